//! A screen as data: what it says, without how it looks. A screen is built once as a [`Document`] and printed by one of the
//! renderers in [`render`](crate::render): terminal, Markdown or HTML.

use std::borrow::Cow;

use crate::charts::Chart;
use crate::table::Table;
use crate::text::Text;

/// A screen: blocks from top to bottom.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// Blocks in reading order.
    pub blocks: Vec<Block>,
}

/// A part of a screen.
#[derive(Debug, Clone)]
pub enum Block {
    /// Title of the whole screen.
    Title(Text),
    /// Heading of a section.
    Section(Section),
    /// Heading within a section.
    Subheading(Text),
    /// A paragraph.
    Paragraph(Text),
    /// A remark that explains what stands above it.
    Note(Text),
    /// A warning about the results above it.
    Warning(Text),
    /// A remark about the charts that follow. The terminal and Markdown omit it together with them.
    ChartNote(Text),
    /// A list of items of equal rank.
    List(Vec<Text>),
    /// Names with one value each.
    Facts(Vec<Fact>),
    /// A table.
    Table(Table),
    /// A chart. The terminal and Markdown omit it, because the tables beside it have its figures.
    Chart(Box<Chart>),
    /// Blocks that a page shows only on request.
    Details(Details),
}

/// Blocks that a page shows only on request. The terminal and Markdown always show them, below the summary.
#[derive(Debug, Clone)]
pub struct Details {
    /// Title of the blocks, in a few words.
    pub summary: String,
    /// The blocks.
    pub content: Document,
}

/// Heading of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Id within the page, for links: lower-case letters, digits and hyphens.
    pub id: Cow<'static, str>,
    /// Heading as a reader sees it.
    pub heading: String,
}

/// A name with its value, such as `power: mains`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Name of the value.
    pub name: String,
    /// The value.
    pub value: Text,
}

impl Document {
    /// Creates a document without a title.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a document with a title.
    pub fn titled(title: impl Into<Text>) -> Self {
        Self { blocks: vec![Block::Title(title.into())] }
    }

    /// Returns the document as a part of a page: its title becomes the heading of a section, and its sections become
    /// subheadings. `id` is the id of the section.
    pub fn into_section(self, id: &'static str) -> Self {
        let nested = |block| match block {
            Block::Title(title) => Block::Section(Section { id: id.into(), heading: title.content() }),
            Block::Section(section) => Block::Subheading(section.heading.into()),
            other => other,
        };
        Self { blocks: self.blocks.into_iter().map(nested).collect() }
    }

    /// Starts a section. `id` is its id on a page.
    pub fn section(&mut self, id: impl Into<Cow<'static, str>>, heading: impl Into<String>) -> &mut Self {
        self.push(Block::Section(Section { id: id.into(), heading: heading.into() }))
    }

    /// Adds a heading within the current section.
    pub fn subheading(&mut self, heading: impl Into<Text>) -> &mut Self {
        self.push(Block::Subheading(heading.into()))
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: impl Into<Text>) -> &mut Self {
        self.push(Block::Paragraph(text.into()))
    }

    /// Adds a remark.
    pub fn note(&mut self, text: impl Into<Text>) -> &mut Self {
        self.push(Block::Note(text.into()))
    }

    /// Adds a warning about the results above it.
    pub fn warning(&mut self, text: impl Into<Text>) -> &mut Self {
        self.push(Block::Warning(text.into()))
    }

    /// Adds a remark about the charts that follow.
    pub fn chart_note(&mut self, text: impl Into<Text>) -> &mut Self {
        self.push(Block::ChartNote(text.into()))
    }

    /// Adds a list; nothing if it has no item.
    pub fn list<T: Into<Text>>(&mut self, items: impl IntoIterator<Item = T>) -> &mut Self {
        let items: Vec<Text> = items.into_iter().map(Into::into).collect();
        if items.is_empty() { self } else { self.push(Block::List(items)) }
    }

    /// Adds names with their values; nothing if there are none.
    pub fn facts(&mut self, facts: Vec<Fact>) -> &mut Self {
        if facts.is_empty() { self } else { self.push(Block::Facts(facts)) }
    }

    /// Adds a table; nothing if it has no row.
    pub fn table(&mut self, table: Table) -> &mut Self {
        if table.rows.is_empty() { self } else { self.push(Block::Table(table)) }
    }

    /// Adds a chart.
    pub fn chart(&mut self, chart: Chart) -> &mut Self {
        self.push(Block::Chart(Box::new(chart)))
    }

    /// Adds charts.
    pub fn charts(&mut self, charts: impl IntoIterator<Item = Chart>) -> &mut Self {
        self.blocks.extend(charts.into_iter().map(|chart| Block::Chart(Box::new(chart))));
        self
    }

    /// Adds blocks that a page shows only on request; nothing if there are none.
    pub fn details(&mut self, details: Details) -> &mut Self {
        if details.content.blocks.is_empty() { self } else { self.push(Block::Details(details)) }
    }

    /// Adds all blocks of another document.
    pub fn append(&mut self, other: Document) -> &mut Self {
        self.blocks.extend(other.blocks);
        self
    }

    /// Returns the sections in order, for a table of contents.
    pub fn sections(&self) -> impl Iterator<Item = &Section> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Section(section) => Some(section),
            _ => None,
        })
    }

    /// Returns the charts in order, without those that a page shows only on request.
    pub fn charts_shown(&self) -> impl Iterator<Item = &Chart> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Chart(chart) => Some(chart.as_ref()),
            _ => None,
        })
    }

    fn push(&mut self, block: Block) -> &mut Self {
        self.blocks.push(block);
        self
    }
}

impl Fact {
    /// Creates a fact.
    pub fn new(name: impl Into<String>, value: impl Into<Text>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}
