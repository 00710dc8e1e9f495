//! The names of the files and folders of a set.

use std::ffi::{CStr, CString};

use crate::corpus::draw::{draw, draw_below};
use crate::profile::Names;

/// How many letters a name has at most; with eight digits and the dash it is then as long as bonnie++'s longest.
const MOST_LETTERS: u64 = 13;
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// The name of a file of a set with this seed.
pub fn file_name(names: Names, seed: u64, number: u64) -> CString {
    text(match names {
        Names::Digits => digits(number),
        Names::DigitsLetters => format!("{}-{}", digits(number), letters(seed, number)),
        Names::LettersDigits => format!("{}-{}", letters(seed, number), digits(number)),
    })
}

/// The number of a file, if a set with this seed would give it this name.
pub fn file_number(names: Names, seed: u64, name: &CStr) -> Option<u64> {
    let said = name.to_str().ok()?;
    let said = match names {
        Names::Digits => said,
        Names::DigitsLetters => said.split('-').next()?,
        Names::LettersDigits => said.split('-').next_back()?,
    };
    let number = u64::from_str_radix(said, 16).ok()?;
    (*file_name(names, seed, number) == *name).then_some(number)
}

/// Whether a set could give a file this name.
pub fn is_file_name(name: &str) -> bool {
    let is_digits = |part: &str| u64::from_str_radix(part, 16).is_ok_and(|number| digits(number) == part);
    let is_letters = |part: &str| {
        (1..=MOST_LETTERS).contains(&(part.len() as u64)) && part.bytes().all(|byte| LETTERS.contains(&byte))
    };
    name.split_once('-').map_or(is_digits(name), |(begin, end)| {
        is_digits(begin) && is_letters(end) || is_letters(begin) && is_digits(end)
    })
}

/// The name of a folder of a set.
pub fn folder_name(number: u64) -> CString {
    text(format!("d{number:05}"))
}

/// Whether a set could give a folder this name.
pub fn is_folder_name(name: &str) -> bool {
    let is_number = |digits: &str| digits.len() == 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    name.strip_prefix('d').is_some_and(is_number)
}

/// The digits of a number in names.
pub fn digits(number: u64) -> String {
    format!("{number:08x}")
}

/// A name as the calls take it.
pub fn text(name: String) -> CString {
    CString::new(name).expect("names are made without NUL")
}

fn letters(seed: u64, number: u64) -> String {
    let seed = draw(seed, 0x6e61_6d65, number);
    let count = 1 + draw_below(seed, 0, 0, MOST_LETTERS);
    let letter = |place| char::from(LETTERS[draw_below(seed, 1, place, LETTERS.len() as u64) as usize]);
    (0..count).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Names; 3] = [Names::Digits, Names::DigitsLetters, Names::LettersDigits];

    #[test]
    fn every_name_is_owned_and_tells_its_number_and_no_two_are_alike() {
        for names in ALL {
            let made: Vec<CString> = (0..5000).map(|number| file_name(names, 7, number)).collect();
            for (number, name) in made.iter().enumerate() {
                assert!(is_file_name(name.to_str().unwrap()), "{name:?}");
                assert_eq!(file_number(names, 7, name), Some(number as u64));
            }
            assert_eq!(made.iter().collect::<std::collections::BTreeSet<_>>().len(), made.len());
        }
    }

    #[test]
    fn lettered_names_are_as_long_as_those_of_the_original() {
        // bonnie++ 2.00, bon_file.cpp: ten digits and none to twelve letters, each number of them as often as the others.
        for names in [Names::DigitsLetters, Names::LettersDigits] {
            let lengths: Vec<usize> =
                (0..16_384).map(|number| file_name(names, 7, number).count_bytes()).collect();
            assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&10), Some(&22)));
            let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
            assert!((mean - 16.0).abs() < 0.2, "{mean}");
        }
    }

    #[test]
    fn a_name_of_another_seed_has_no_number() {
        let name = file_name(Names::LettersDigits, 8, 3);
        assert_eq!(file_number(Names::LettersDigits, 7, &name), None);
        assert_eq!(file_number(Names::Digits, 8, &name), None);
    }

    #[test]
    fn what_no_set_would_name_is_not_owned() {
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
        assert!(is_folder_name("d00012"));
        for other in ["d+0001", "d0001", "00001", "d000012", "diary"] {
            assert!(!is_folder_name(other), "{other}");
        }
    }
}
