//! The Exif part of a photo: a little-endian TIFF block (Exif 2.32 section 4.5) with an embedded thumbnail.

/// Offset of the thumbnail in the TIFF block, in bytes. The bytes between the last tag and the thumbnail are zero;
/// cameras pad in the same way.
pub(super) const THUMBNAIL_OFFSET: usize = 768;
/// TIFF header: byte-order mark, 42 and the offset of IFD0 (Exif 2.32 4.5.2).
const TIFF_HEADER: [u8; 8] = [b'I', b'I', 42, 0, 8, 0, 0, 0];
const ENTRY_BYTES: usize = 12;
/// Size of a directory without its entries, in bytes: the number of entries before them, and the offset of the
/// next directory after them (Exif 2.32 4.6.2).
const DIRECTORY_BYTES: usize = 2 + 4;
/// Maximum size of a value that is stored in its entry, in bytes (Exif 2.32 4.6.2).
const INLINE_BYTES: usize = 4;

/// Properties of a photo that its Exif block contains.
pub(super) struct ExifFields {
    /// Width of the picture in pixels.
    pub(super) width: u16,
    /// Height of the picture in pixels.
    pub(super) height: u16,
    /// Number of the photo, from which the time of the photo is derived.
    pub(super) index: u32,
    /// Size of the thumbnail in bytes.
    pub(super) thumbnail_bytes: u32,
}

enum Value {
    Text(String),
    Short(u16),
    Long(u32),
    Ratio(u32, u32),
    Raw([u8; 4]),
}

impl Value {
    /// Returns the type and the count (Exif 2.32 4.6.2), and the encoded bytes.
    fn encode(&self) -> (u16, u32, Vec<u8>) {
        match self {
            Self::Text(text) => (2, text.len() as u32 + 1, [text.as_bytes(), &[0]].concat()),
            Self::Short(value) => (3, 1, value.to_le_bytes().to_vec()),
            Self::Long(value) => (4, 1, value.to_le_bytes().to_vec()),
            Self::Ratio(over, under) => (5, 1, [over.to_le_bytes(), under.to_le_bytes()].concat()),
            Self::Raw(bytes) => (7, 4, bytes.to_vec()),
        }
    }
}

/// Returns the TIFF block up to the thumbnail: exactly [`THUMBNAIL_OFFSET`] bytes, to which the caller appends the
/// thumbnail.
pub(super) fn exif_block(facts: &ExifFields) -> Vec<u8> {
    let mut block = TIFF_HEADER.to_vec();
    let exif_at = directory_end(&block, &main_tags(facts, 0));
    let main = main_tags(facts, exif_at);
    let exif = exif_tags(facts);
    let second_at = exif_at + (directory_end(&[], &exif));
    append_directory(&mut block, &main, second_at);
    append_directory(&mut block, &exif, 0);
    append_directory(&mut block, &thumbnail_tags(facts), 0);
    assert!(block.len() <= THUMBNAIL_OFFSET, "the tags have a fixed size and fit before the thumbnail");
    block.resize(THUMBNAIL_OFFSET, 0);
    block
}

/// Returns the tags of IFD0 (Exif 2.32 table 4), in ascending order as TIFF requires.
fn main_tags(facts: &ExifFields, exif_at: u32) -> Vec<(u16, Value)> {
    vec![
        (0x010F, Value::Text("longhaul".into())),
        (0x0110, Value::Text("longhaul synthetic camera".into())),
        (0x0112, Value::Short(1)),
        (0x011A, Value::Ratio(72, 1)),
        (0x011B, Value::Ratio(72, 1)),
        (0x0128, Value::Short(2)),
        (0x0132, Value::Text(taken_at(facts.index))),
        (0x0213, Value::Short(1)),
        (0x8769, Value::Long(exif_at)),
    ]
}

/// Returns the tags of the Exif directory (Exif 2.32 tables 5, 7 and 8).
fn exif_tags(facts: &ExifFields) -> Vec<(u16, Value)> {
    vec![
        (0x829A, Value::Ratio(1, 125)),
        (0x829D, Value::Ratio(28, 10)),
        (0x8827, Value::Short(200)),
        (0x9000, Value::Raw(*b"0232")),
        (0x9003, Value::Text(taken_at(facts.index))),
        (0x9101, Value::Raw([1, 2, 3, 0])),
        (0x920A, Value::Ratio(35, 1)),
        (0xA000, Value::Raw(*b"0100")),
        (0xA001, Value::Short(1)),
        (0xA002, Value::Long(facts.width.into())),
        (0xA003, Value::Long(facts.height.into())),
    ]
}

/// Returns the tags of IFD1, which describes a compressed thumbnail (Exif 2.32 4.5.5, 4.6.4).
fn thumbnail_tags(facts: &ExifFields) -> Vec<(u16, Value)> {
    vec![
        (0x0103, Value::Short(6)),
        (0x011A, Value::Ratio(72, 1)),
        (0x011B, Value::Ratio(72, 1)),
        (0x0128, Value::Short(2)),
        (0x0201, Value::Long(THUMBNAIL_OFFSET as u32)),
        (0x0202, Value::Long(facts.thumbnail_bytes)),
    ]
}

/// Returns the time of a photo in the format of Exif 2.32 4.6.4 (DateTime). Photos of a corpus are ten seconds
/// apart, and the times repeat after 28 days.
fn taken_at(index: u32) -> String {
    let tens = index % (28 * 24 * 360);
    let (day, hour, minute) = (tens / (24 * 360) + 1, tens / 360 % 24, tens / 6 % 60);
    format!("2025:06:{day:02} {hour:02}:{minute:02}:{:02}", tens % 6 * 10)
}

/// Returns the end offset of a directory with these tags that starts at the end of `before`.
fn directory_end(before: &[u8], tags: &[(u16, Value)]) -> u32 {
    let outside: usize = tags.iter().map(|(_, value)| outside_bytes(value.encode().2.len())).sum();
    (before.len() + DIRECTORY_BYTES + tags.len() * ENTRY_BYTES + outside) as u32
}

/// Returns the number of bytes that a value takes after its directory. It is rounded up to an even number, because
/// offsets must be even (TIFF 6.0 section 2).
fn outside_bytes(length: usize) -> usize {
    if length > INLINE_BYTES { length.next_multiple_of(2) } else { 0 }
}

/// Appends a directory, the offset of the `next` directory (0 if there is none), and the values that do not fit
/// into their entries.
fn append_directory(block: &mut Vec<u8>, tags: &[(u16, Value)], next: u32) {
    let mut outside = Vec::new();
    let outside_at = block.len() + DIRECTORY_BYTES + tags.len() * ENTRY_BYTES;
    block.extend((tags.len() as u16).to_le_bytes());
    for (tag, value) in tags {
        let (kind, count, mut bytes) = value.encode();
        block.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
        block.extend(count.to_le_bytes());
        if bytes.len() > INLINE_BYTES {
            block.extend(((outside_at + outside.len()) as u32).to_le_bytes());
            bytes.resize(outside_bytes(bytes.len()), 0);
            outside.extend(bytes);
        } else {
            bytes.resize(INLINE_BYTES, 0);
            block.extend(bytes);
        }
    }
    block.extend(next.to_le_bytes());
    block.extend(outside);
}

#[cfg(test)]
mod tests {
    use super::*;
    use exif::{In, Reader, Tag};

    #[test]
    fn every_tag_is_read_back() {
        let facts = ExifFields { width: 2432, height: 1840, index: 7, thumbnail_bytes: 10 };
        let mut bytes = exif_block(&facts);
        bytes.extend([0; 10]);
        let read = Reader::new().read_raw(bytes).expect("a TIFF block");
        let text =
            |tag, directory| read.get_field(tag, directory).map(|field| field.display_value().to_string());
        assert_eq!(text(Tag::Make, In::PRIMARY).as_deref(), Some("\"longhaul\""));
        assert_eq!(text(Tag::DateTimeOriginal, In::PRIMARY).as_deref(), Some("2025-06-01 00:01:10"));
        assert_eq!(text(Tag::PixelXDimension, In::PRIMARY).as_deref(), Some("2432"));
        assert_eq!(text(Tag::JPEGInterchangeFormat, In::THUMBNAIL).as_deref(), Some("768"));
        assert_eq!(read.fields().len(), 8 + 11 + 6, "the pointer to the Exif directory is not counted");
    }

    #[test]
    fn time_is_valid_for_every_index() {
        assert_eq!(taken_at(0), "2025:06:01 00:00:00");
        assert_eq!(taken_at(28 * 24 * 360 - 1), "2025:06:28 23:59:50");
        assert_eq!(taken_at(u32::MAX).len(), 19);
    }
}
