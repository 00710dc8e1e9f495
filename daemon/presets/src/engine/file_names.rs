//! The names of the files and folders in a preset's file set.

use std::ffi::{CStr, CString};

use crate::profile::NamePattern;
use longhaul_corpus::names::to_cstring;
use longhaul_model::draw::{draw, draw_below};

/// The maximum number of letters in a file name.
///
/// With eight digits and a dash, the longest name is as long as bonnie++'s longest name.
const MAX_LETTERS: u64 = 13;
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Returns the name of a file in a set with this seed.
pub fn file_name(names: NamePattern, seed: u64, number: u64) -> CString {
    to_cstring(match names {
        NamePattern::Digits => digits(number),
        NamePattern::DigitsLetters => format!("{}-{}", digits(number), letters(seed, number)),
        NamePattern::LettersDigits => format!("{}-{}", letters(seed, number), digits(number)),
    })
}

/// Returns the number of the file with this name; `None` if a set with this seed has no file of this name.
pub fn file_number(names: NamePattern, seed: u64, name: &CStr) -> Option<u64> {
    let text = name.to_str().ok()?;
    let digits = match names {
        NamePattern::Digits => text,
        NamePattern::DigitsLetters => text.split('-').next()?,
        NamePattern::LettersDigits => text.split('-').next_back()?,
    };
    let number = u64::from_str_radix(digits, 16).ok()?;
    (*file_name(names, seed, number) == *name).then_some(number)
}

/// Returns whether some set could have a file with this name.
pub fn is_file_name(name: &str) -> bool {
    let is_digits = |part: &str| u64::from_str_radix(part, 16).is_ok_and(|number| digits(number) == part);
    let is_letters = |part: &str| {
        (1..=MAX_LETTERS).contains(&(part.len() as u64)) && part.bytes().all(|byte| LETTERS.contains(&byte))
    };
    name.split_once('-').map_or(is_digits(name), |(first, last)| {
        is_digits(first) && is_letters(last) || is_letters(first) && is_digits(last)
    })
}

/// Returns the name of a folder in a set: `d00012`.
pub fn folder_name(number: u64) -> CString {
    to_cstring(format!("d{number:05}"))
}

/// Returns the number of the folder with this name; `None` if no set has a folder of this name.
pub fn folder_number(name: &str) -> Option<u64> {
    let is_number = |digits: &&str| digits.len() == 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    name.strip_prefix('d').filter(is_number)?.parse().ok()
}

/// Formats a file number for a name: eight hexadecimal digits.
pub fn digits(number: u64) -> String {
    format!("{number:08x}")
}

fn letters(seed: u64, number: u64) -> String {
    let seed = draw(seed, 0x6e61_6d65, number);
    let count = 1 + draw_below(seed, 0, 0, MAX_LETTERS);
    let letter = |index| char::from(LETTERS[draw_below(seed, 1, index, LETTERS.len() as u64) as usize]);
    (0..count).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [NamePattern; 3] =
        [NamePattern::Digits, NamePattern::DigitsLetters, NamePattern::LettersDigits];

    #[test]
    fn names_are_owned_unique_and_encode_their_number() {
        for names in ALL {
            let all: Vec<CString> = (0..5000).map(|number| file_name(names, 7, number)).collect();
            for (number, name) in all.iter().enumerate() {
                assert!(is_file_name(name.to_str().unwrap()), "{name:?}");
                assert_eq!(file_number(names, 7, name), Some(number as u64));
            }
            assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
        }
    }

    #[test]
    fn names_with_letters_have_the_length_of_bonnies() {
        // bonnie++ 2.00, bon_file.cpp: ten digits, then 0 to 12 letters; each number of letters is equally likely.
        for names in [NamePattern::DigitsLetters, NamePattern::LettersDigits] {
            let lengths: Vec<usize> =
                (0..16_384).map(|number| file_name(names, 7, number).count_bytes()).collect();
            assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&10), Some(&22)));
            let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
            assert!((mean - 16.0).abs() < 0.2, "{mean}");
        }
    }

    #[test]
    fn a_name_from_another_seed_has_no_number() {
        let name = file_name(NamePattern::LettersDigits, 8, 3);
        assert_eq!(file_number(NamePattern::LettersDigits, 7, &name), None);
        assert_eq!(file_number(NamePattern::Digits, 8, &name), None);
    }

    #[test]
    fn foreign_names_are_not_owned() {
        let others = [
            "0",
            "0000000g",
            "00000000-",
            "-00000000",
            "00000000-A",
            "00000000-a b",
            "a-b",
            "",
            "a-b-00000000",
        ];
        for other in others.into_iter().chain(["00000000-fourteenletter", "Rechnung 00000000"]) {
            assert!(!is_file_name(other), "{other}");
        }
        assert_eq!(folder_number("d00012"), Some(12));
        for other in ["d+0001", "d0001", "00001", "d000012", "diary"] {
            assert_eq!(folder_number(other), None, "{other}");
        }
    }
}
