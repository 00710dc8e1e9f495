//! The messages of `vfs_full_audit`, and what stands around them.

use std::time::Duration;

use crate::ActionResult;
use crate::import::numbers::date;

/// Bytes of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// The argument of `strict_lock_check`, `/path:0-300000:0`: offset, length, kind of lock.
pub(super) fn checked_range(argument: &str) -> Option<CheckedRange<'_>> {
    let (path_and_range, _) = argument.rsplit_once(':')?;
    let (path, range) = path_and_range.rsplit_once(':')?;
    let (offset, length) = range.split_once('-')?;
    Some(CheckedRange { path, range: Range { offset: offset.parse().ok()?, length: length.parse().ok()? } })
}

/// A file and the bytes of it that are transferred next.
pub(super) struct CheckedRange<'line> {
    pub(super) path: &'line str,
    pub(super) range: Range,
}

/// A message: session, operation, result, arguments.
pub(super) struct Message<'line> {
    pub(super) prefix: &'line str,
    pub(super) operation: &'line str,
    pub(super) result: ActionResult,
    pub(super) arguments: Vec<&'line str>,
}

/// Splits a message. The prefix is configured and may have any number of fields, so the operation is the field before the
/// result.
pub(super) fn message(text: &str) -> Option<Message<'_>> {
    let fields: Vec<&str> = text.split('|').collect();
    let is_result = |field: &&str| *field == "ok" || (field.starts_with("fail (") && field.ends_with(')'));
    let index = fields.iter().position(is_result).filter(|index| *index > 0)?;
    let operation = fields[index - 1];
    let length: usize = fields[..index - 1].iter().map(|field| field.len() + 1).sum();
    let result = match fields[index] {
        "ok" => ActionResult::Done,
        "fail (No such file or directory)" => ActionResult::NotFound,
        "fail (File exists)" => ActionResult::Exists,
        _ => ActionResult::Failed,
    };
    Some(Message { prefix: &text[..length], operation, result, arguments: fields[index + 1..].to_vec() })
}

/// Parses `[2026/11/26 09:32:09.971917,  1] ../../source3/modules/vfs_full_audit.c:643(do_log)`, the line before a message.
pub(super) fn head_of_samba(line: &str) -> Option<Duration> {
    let (time, _) = line.strip_prefix('[')?.split_once(',')?;
    date(time)
}
