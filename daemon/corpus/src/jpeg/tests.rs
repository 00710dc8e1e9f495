use super::*;
use crate::{decode, thumbnail};
use proptest::prelude::*;
use std::convert::Infallible;

fn bytes_of(photo: &Photo) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Ok(()) = photo.write(&mut |piece| -> Result<(), Infallible> {
        assert!(piece.len() <= CHUNK_BYTES);
        bytes.extend_from_slice(piece);
        Ok(())
    });
    bytes
}

/// Returns the compressed size divided by the original size, for deflate at its default level.
fn deflated_share(bytes: &[u8]) -> f64 {
    miniz_oxide::deflate::compress_to_vec(bytes, 6).len() as f64 / bytes.len() as f64
}

#[test]
fn photo_decodes_in_strict_mode() {
    for (index, size) in [(0, MINIMUM_PHOTO_BYTES), (1, 100_001), (2, 2_677_419)] {
        let photo = Photo::new(7, index, size);
        let side_lengths = decode(&bytes_of(&photo)).expect("a strict decoder accepts the photo");
        assert_eq!(side_lengths, (usize::from(photo.width), usize::from(photo.height)), "{size} bytes");
    }
}

#[test]
fn photo_has_an_aspect_ratio_of_about_4_to_3() {
    let photo = Photo::new(1, 1, 2_677_419);
    assert_eq!((photo.width, photo.height), (2432, 1824));
}

#[test]
fn thumbnail_is_in_the_first_64_kib_and_160_wide() {
    let bytes = bytes_of(&Photo::new(7, 3, 300_000));
    let range = thumbnail(&bytes[..64 * 1024]).expect("the head contains a thumbnail");
    let side_lengths = decode(&bytes[range]).expect("the thumbnail decodes");
    assert_eq!(side_lengths, (160, 128));
}

#[test]
fn photo_is_deterministic_and_differs_from_all_others() {
    let one = bytes_of(&Photo::new(1, 1, 50_000));
    assert_eq!(one, bytes_of(&Photo::new(1, 1, 50_000)));
    assert_ne!(one, bytes_of(&Photo::new(1, 2, 50_000)));
    assert_ne!(one, bytes_of(&Photo::new(2, 1, 50_000)));
}

#[test]
fn size_is_clamped_to_the_valid_range() {
    assert_eq!(Photo::new(1, 1, 0).size, MINIMUM_PHOTO_BYTES);
    assert_eq!(Photo::new(1, 1, u64::MAX).size, MAXIMUM_PHOTO_BYTES);
}

#[test]
fn photo_is_nearly_incompressible() {
    let share = deflated_share(&bytes_of(&Photo::new(7, 4, 2_677_419)));
    println!("size of a photo after deflate: {:.2} %", share * 100.0);
    assert!(share > 0.94, "share of the size after deflate: {share}");
}

#[test]
fn truncated_or_longer_photo_differs_at_the_end() {
    let photo = Photo::new(1, 1, 1_500_000);
    let mut bytes = bytes_of(&photo);
    assert_eq!(photo.first_difference(&bytes), None);
    assert_eq!(photo.first_difference(&bytes[..1_499_999]), Some(1_499_999));
    assert_eq!(photo.first_difference(&bytes[..CHUNK_BYTES]), Some(CHUNK_BYTES as u64));
    assert_eq!(photo.first_difference(&[]), Some(0));
    bytes.push(0);
    assert_eq!(photo.first_difference(&bytes), Some(1_500_000));
    assert!(decode(&bytes[..700_000]).is_err(), "a strict decoder detects the truncation as well");
}

#[test]
fn write_stops_at_the_first_error() {
    let mut chunks = 0;
    let result = Photo::new(1, 1, 3_000_000).write(&mut |_| {
        chunks += 1;
        Err("full")
    });
    assert_eq!((result, chunks), (Err("full"), 1));
}

#[test]
fn comments_fill_any_number_of_bytes() {
    for left in (COMMENT_HEAD..12).chain(COMMENT_MAXIMUM - 2..COMMENT_MAXIMUM + 12) {
        let first = comment_bytes(left);
        assert!((COMMENT_HEAD..=COMMENT_MAXIMUM).contains(&first), "{left}");
        assert!(first == left || left - first >= COMMENT_HEAD, "{left}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn photo_has_exactly_the_requested_size(seed: u64, index: u32, size in MINIMUM_PHOTO_BYTES..1_400_000) {
        let photo = Photo::new(seed, index, size);
        let bytes = bytes_of(&photo);
        prop_assert_eq!(bytes.len() as u64, size);
        prop_assert_eq!(&bytes[bytes.len() - 2..], &[0xFF, 0xD9]);
        prop_assert_eq!(photo.first_difference(&bytes), None);
    }

    #[test]
    fn small_photo_decodes_for_any_seed(seed: u64, size in MINIMUM_PHOTO_BYTES..80_000) {
        let photo = Photo::new(seed, 0, size);
        let side_lengths = decode(&bytes_of(&photo)).expect("a strict decoder accepts the photo");
        prop_assert_eq!(side_lengths, (usize::from(photo.width), usize::from(photo.height)));
    }

    #[test]
    fn changed_byte_is_found_at_its_offset(at: prop::sample::Index, flip in 1u8..) {
        let photo = Photo::new(9, 9, 1_200_000);
        let mut bytes = bytes_of(&photo);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert_eq!(photo.first_difference(&bytes), Some(at as u64));
    }

    #[test]
    fn interval_grid_fits_for_every_size(room in 6u64..60_000) {
        let (across, rows) = interval_grid(room);
        prop_assert!(across * rows <= room && room - across * rows < across);
        prop_assert!(rows > 0 && rows * MCU_SIDE < 65_536 && across * INTERVAL_WIDTH < 65_536);
    }
}
