//! The page about the method of measuring and deciding.

use axum::response::Response;
use longhaul_view::charts::SeriesStyles;
use longhaul_view::{render, screens};

use super::{NavItem, render_page};
use crate::app_state::AppState;

/// Serves the method page.
pub async fn method(app: AppState) -> Response {
    render_page(app, NavItem::Method, |cache| {
        let newest = cache.newest_week()?;
        let weekly = cache.weekly(newest)?;
        Ok(render::html::render(&screens::method::method(&weekly), &SeriesStyles::default()))
    })
    .await
}
