//! Names as file systems compare them: composed and decomposed letters, upper and lower case.

use super::Quirk;
use super::volume::Quirks;

/// Letters that have a decomposition (Unicode form D), by their mark: composed, and without it. Latin, Greek, Cyrillic
/// and kana: more than the names of the corpus are made of.
const LETTERS: [(char, &str, &str); 15] = [
    ('\u{300}', "ÀÈÌÒÙàèìòùЀЍѐѝ", "AEIOUaeiouЕИеи"),
    ('\u{301}', "ÁÉÍÓÚÝáéíóúýĆćĹĺŃńŔŕŚśŹźΆΈΉΊΌΎΏάέήίόύώЃЌѓќ", "AEIOUYaeiouyCcLlNnRrSsZzΑΕΗΙΟΥΩαεηιουωГКгк"),
    ('\u{302}', "ÂÊÎÔÛâêîôûĈĉĜĝĤĥĴĵŜŝŴŵŶŷ", "AEIOUaeiouCcGgHhJjSsWwYy"),
    ('\u{303}', "ÃÑÕãñõĨĩŨũ", "ANOanoIiUu"),
    ('\u{304}', "ĀāĒēĪīŌōŪū", "AaEeIiOoUu"),
    ('\u{306}', "ĂăĔĕĞğĬĭŎŏŬŭЎЙйў", "AaEeGgIiOoUuУИиу"),
    ('\u{307}', "ĊċĖėĠġİŻż", "CcEeGgIZz"),
    ('\u{308}', "ÄËÏÖÜäëïöüÿŸΪΫϊϋЁЇёї", "AEIOUaeiouyYΙΥιυЕІеі"),
    ('\u{30a}', "ÅåŮů", "AaUu"),
    ('\u{30b}', "ŐőŰű", "OoUu"),
    ('\u{30c}', "ČčĎďĚěĽľŇňŘřŠšŤťŽž", "CcDdEeLlNnRrSsTtZz"),
    ('\u{327}', "ÇçĢģĶķĻļŅņŖŗŞşŢţ", "CcGgKkLlNnRrSsTt"),
    ('\u{328}', "ĄąĘęĮįŲų", "AaEeIiUu"),
    (
        '\u{3099}',
        "がぎぐげござじずぜぞだぢづでどばびぶべぼゔゞガギグゲゴザジズゼゾダヂヅデドバビブベボヴヷヸヹヺヾ",
        "かきくけこさしすせそたちつてとはひふへほうゝカキクケコサシスセソタチツテトハヒフヘホウワヰヱヲヽ",
    ),
    ('\u{309a}', "ぱぴぷぺぽパピプペポ", "はひふへほハヒフヘホ"),
];

/// A name in form D. The answer to a listing on smbfs and HFS+ (SMBClient kernel/netsmb/smb_converter.c:
/// `smb_convert_from_network` sets `UTF_DECOMPOSED`); both take either form.
pub fn decomposed(name: &str) -> String {
    let parts = |letter: char| {
        LETTERS.iter().find_map(|(mark, composed, bases)| {
            let place = composed.chars().position(|known| known == letter)?;
            Some((bases.chars().nth(place)?, *mark))
        })
    };
    let mut whole = String::with_capacity(name.len());
    for letter in name.chars() {
        match parts(letter) {
            Some((base, mark)) => whole.extend([base, mark]),
            None => whole.push(letter),
        }
    }
    whole
}

/// Equal for names that mean the same file.
pub fn key(name: &str, quirks: &Quirks) -> String {
    let name = match quirks.contains(&Quirk::DecomposedNames) {
        true => decomposed(name),
        false => name.to_owned(),
    };
    match quirks.contains(&Quirk::CaseInsensitive) {
        true => name.to_lowercase(),
        false => name,
    }
}
