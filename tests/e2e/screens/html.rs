//! Converts an HTML page to text: one line for each block, with the labels that a screen reader reads.

/// Elements whose text is skipped: scripts, styles, and the labels within a chart.
const SKIPPED_ELEMENTS: [&str; 3] = ["script", "style", "text"];
/// Inline elements, which do not start a new line.
const INLINE: [&str; 9] = ["a", "b", "em", "strong", "span", "code", "abbr", "small", "time"];
/// Elements that are cells of a table row.
const CELLS: [&str; 2] = ["td", "th"];
/// Attributes whose text is shown or read aloud to users.
const TEXT_ATTRIBUTES: [&str; 4] = ["aria-label", "alt", "placeholder", "title"];

/// Number of rows to keep of each table.
const MAX_ROWS: usize = 4;

/// Returns title and main part of a page as text, without navigation and footer.
pub fn main_text(page: &str) -> String {
    match page.split_once("<main").zip(page.split_once("<title>")) {
        Some(((head, main), (_, title))) => {
            let title = title.split("</title>").next().unwrap_or_default();
            let main = main.split("</main>").next().unwrap_or_default();
            text_of(&format!("{}\n<h1>{title}</h1><main{main}", head.lines().next().unwrap_or_default()))
        }
        None => text_of(page),
    }
}

/// Returns a page as text.
pub fn text_of(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some(begin) = rest.find('<') {
        text += &rest[..begin].replace(['\n', '\r'], " ");
        let end = rest[begin..].find('>').map_or(rest.len(), |end| begin + end + 1);
        let tag = rest[begin..end].trim_matches(['<', '>']);
        rest = &rest[end..];
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        if SKIPPED_ELEMENTS.contains(&name) && !tag.starts_with('/') && !tag.ends_with('/') {
            let closing = format!("</{name}>");
            rest = rest.find(&closing).map_or("", |end| &rest[end + closing.len()..]);
        }
        if CELLS.contains(&name) {
            text += if tag.starts_with('/') { " | " } else { "" };
        } else if !INLINE.contains(&name) {
            text.push('\n');
        }
        let labels = TEXT_ATTRIBUTES.iter().filter_map(|attribute| value(tag, attribute));
        labels.for_each(|words| text += &format!("\n[{words}]\n"));
    }
    text += rest;
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    shortened(&lines).replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
        + "\n"
}

/// Keeps the first [`MAX_ROWS`] rows of each table.
fn shortened(lines: &[String]) -> String {
    let tables = lines.chunk_by(|one, next| one.ends_with(" |") && next.ends_with(" |"));
    let shown = tables.flat_map(|rows| {
        let more = rows.len().saturating_sub(MAX_ROWS);
        let rest = (more > 0).then(|| format!("... and {more} rows"));
        rows.iter().take(MAX_ROWS).cloned().chain(rest)
    });
    shown.collect::<Vec<_>>().join("\n")
}

fn value<'t>(tag: &'t str, attribute: &str) -> Option<&'t str> {
    let (_, rest) = tag.split_once(&format!(" {attribute}=\""))?;
    rest.split('"').next().filter(|words| !words.is_empty())
}

#[test]
fn text_of_a_page_is_its_sentences_and_labels() {
    let page = "<p>One <b>word</b> &amp; more</p><script>no</script><svg aria-label=\"A chart\"><text>1</text></svg>\
                <tr><td>a</td><td>b</td></tr>";
    assert_eq!(text_of(page), "One word & more\n[A chart]\na | b |\n");
}
