//! Compares file names as file systems do: composed and decomposed letters, upper and lower case.

use std::collections::BTreeSet;

use super::maclike::Quirk;

/// Quirks of a volume.
pub type Quirks = BTreeSet<Quirk>;

/// Letters with a decomposition (Unicode form D): combining mark, composed letters, and base letters in the same
/// order. The table covers Latin, Greek, Cyrillic and kana, which is more than the names of the corpus contain.
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

/// Returns a name in Unicode form D. smbfs and HFS+ list names in this form (SMBClient
/// kernel/netsmb/smb_converter.c:366: `smb_convert_from_network` sets `UTF_DECOMPOSED`) and accept either form.
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

/// Returns a key that is equal for names of the same file.
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
