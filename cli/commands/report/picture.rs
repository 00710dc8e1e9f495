//! Writes the share card as a PNG picture.

use std::path::Path;

#[cfg(feature = "png")]
use anyhow::Context as _;

use crate::errors::UsageError;
use crate::result_file;

/// Draws an SVG picture and writes it to a file; an existing one is replaced.
pub fn write(path: Option<&Path>, svg: &str) -> anyhow::Result<()> {
    let path =
        path.ok_or_else(|| UsageError("`--format png` needs a file: give `--output FILE`".to_owned()))?;
    result_file::write(path, draw(svg)?)
}

#[cfg(feature = "png")]
fn draw(svg: &str) -> anyhow::Result<Vec<u8>> {
    use resvg::{tiny_skia, usvg};
    let mut options = usvg::Options::default();
    options.fontdb_mut().load_system_fonts();
    if options.fontdb.is_empty() {
        return Err(UsageError(
            "no fonts are installed, so a picture would have no text: install DejaVu or another font"
                .to_owned(),
        )
        .into());
    }
    let tree = usvg::Tree::from_str(svg, &options).context("draw the picture")?;
    let size = tree.size().to_int_size();
    let mut pixels =
        tiny_skia::Pixmap::new(size.width(), size.height()).context("draw the picture: it has no size")?;
    resvg::render(&tree, tiny_skia::Transform::identity(), &mut pixels.as_mut());
    pixels.encode_png().context("encode the picture")
}

#[cfg(not(feature = "png"))]
fn draw(_svg: &str) -> anyhow::Result<Vec<u8>> {
    let message =
        "this longhaul was built without pictures: build it with `--features png`, or use `--format html`";
    Err(UsageError(message.to_owned()).into())
}
