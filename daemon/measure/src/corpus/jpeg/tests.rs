use super::*;
use crate::corpus::{decode, thumbnail};
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

/// How much of the size is left after deflate at its default level.
fn deflated_share(bytes: &[u8]) -> f64 {
    miniz_oxide::deflate::compress_to_vec(bytes, 6).len() as f64 / bytes.len() as f64
}

#[test]
fn a_photo_decodes_in_strict_mode() {
    for (index, size) in [(0, MINIMUM_PHOTO_BYTES), (1, 100_001), (2, 2_677_419)] {
        let photo = Photo::new(7, index, size);
        let pixels = decode(&bytes_of(&photo)).expect("a strict decoder accepts the photo");
        assert_eq!((pixels.width, pixels.height), (photo.width(), photo.height()), "{size} bytes");
    }
}

#[test]
fn a_photo_is_about_four_by_three() {
    let photo = Photo::new(1, 1, 2_677_419);
    assert_eq!((photo.width(), photo.height()), (2432, 1824));
}

#[test]
fn the_thumbnail_is_in_the_first_64_kib_and_160_wide() {
    let bytes = bytes_of(&Photo::new(7, 3, 300_000));
    let range = thumbnail(&bytes[..64 * 1024]).expect("the head holds a thumbnail");
    let pixels = decode(&bytes[range]).expect("the thumbnail decodes");
    assert_eq!((pixels.width, pixels.height), (160, 128));
}

#[test]
fn a_photo_is_the_same_each_time_and_unlike_every_other() {
    let one = bytes_of(&Photo::new(1, 1, 50_000));
    assert_eq!(one, bytes_of(&Photo::new(1, 1, 50_000)));
    assert_ne!(one, bytes_of(&Photo::new(1, 2, 50_000)));
    assert_ne!(one, bytes_of(&Photo::new(2, 1, 50_000)));
}

#[test]
fn a_size_that_cannot_be_is_brought_to_the_nearest() {
    assert_eq!(Photo::new(1, 1, 0).size(), MINIMUM_PHOTO_BYTES);
    assert_eq!(Photo::new(1, 1, u64::MAX).size(), MAXIMUM_PHOTO_BYTES);
}

#[test]
fn compression_gains_next_to_nothing() {
    let share = deflated_share(&bytes_of(&Photo::new(7, 4, 2_677_419)));
    println!("deflate leaves {:.2} % of a photo", share * 100.0);
    assert!(share > 0.94, "deflate leaves {share}");
}

#[test]
fn a_photo_that_is_cut_or_longer_differs_at_the_end() {
    let photo = Photo::new(1, 1, 1_500_000);
    let mut bytes = bytes_of(&photo);
    assert_eq!(photo.matches(&bytes), None);
    assert_eq!(photo.matches(&bytes[..1_499_999]), Some(1_499_999));
    assert_eq!(photo.matches(&bytes[..CHUNK_BYTES]), Some(CHUNK_BYTES as u64));
    assert_eq!(photo.matches(&[]), Some(0));
    bytes.push(0);
    assert_eq!(photo.matches(&bytes), Some(1_500_000));
    assert!(decode(&bytes[..700_000]).is_err(), "a strict decoder notices the cut too");
}

#[test]
fn an_error_of_the_writer_ends_the_writing() {
    let mut pieces = 0;
    let result = Photo::new(1, 1, 3_000_000).write(&mut |_| {
        pieces += 1;
        Err("full")
    });
    assert_eq!((result, pieces), (Err("full"), 1));
}

#[test]
fn comments_of_every_length_can_be_written() {
    for left in (COMMENT_HEAD..12).chain(COMMENT_MAXIMUM - 2..COMMENT_MAXIMUM + 12) {
        let first = comment_bytes(left);
        assert!((COMMENT_HEAD..=COMMENT_MAXIMUM).contains(&first), "{left}");
        assert!(first == left || left - first >= COMMENT_HEAD, "{left}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_photo_has_exactly_its_size(seed: u64, index: u32, size in MINIMUM_PHOTO_BYTES..1_400_000) {
        let photo = Photo::new(seed, index, size);
        let bytes = bytes_of(&photo);
        prop_assert_eq!(bytes.len() as u64, size);
        prop_assert_eq!(&bytes[bytes.len() - 2..], &[0xFF, 0xD9]);
        prop_assert_eq!(photo.matches(&bytes), None);
    }

    #[test]
    fn a_small_photo_decodes_whatever_its_seed_is(seed: u64, size in MINIMUM_PHOTO_BYTES..80_000) {
        let photo = Photo::new(seed, 0, size);
        let pixels = decode(&bytes_of(&photo)).expect("a strict decoder accepts the photo");
        prop_assert_eq!((pixels.width, pixels.height), (photo.width(), photo.height()));
    }

    #[test]
    fn a_flipped_byte_is_found_at_its_place(at: prop::sample::Index, flip in 1u8..) {
        let photo = Photo::new(9, 9, 1_200_000);
        let mut bytes = bytes_of(&photo);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert_eq!(photo.matches(&bytes), Some(at as u64));
    }

    #[test]
    fn every_size_has_a_shape_that_fits(room in 6u64..60_000) {
        let (across, rows) = shape(room);
        prop_assert!(across * rows <= room && room - across * rows < across);
        prop_assert!(rows > 0 && rows * MCU_SIDE < 65_536 && across * INTERVAL_WIDTH < 65_536);
    }
}
