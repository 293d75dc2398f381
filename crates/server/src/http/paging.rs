//! Lists in pages. A cursor names the last item shown, so rows that arrive or go between two pages move nothing.
//!
//! Invariant: following `nextLink` from the first page shows every row that was there throughout exactly once.

use crate::{app::App, problem::Problem};
use axum::http::Uri;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::collections::HashMap;

const PAGE: usize = 100;
const PAGE_MOST: usize = 1000;
const CURSORS: [&str; 3] = ["$skipToken", "$skip", "skip"];
const SIZES: [&str; 3] = ["$top", "count", "pageSize"];

/// Which page is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Paging {
    pub(crate) limit: usize,
    /// The last item of the page before; empty on the first page.
    pub(crate) after: String,
}

/// One page and where the next one begins.
pub(crate) struct Cut<T> {
    pub(crate) items: Vec<T>,
    pub(crate) next: Option<String>,
}

impl Paging {
    pub(crate) fn of(asked: &HashMap<String, String>) -> Result<Paging, Problem> {
        Paging::or(asked, PAGE)
    }

    /// The same for lists whose pages have another size where none is asked for.
    pub(crate) fn or(asked: &HashMap<String, String>, usual: usize) -> Result<Paging, Problem> {
        let limit = match find(asked, &SIZES) {
            Some((key, text)) => text
                .parse::<usize>()
                .map_err(|_| Problem::bad(format!("`{key}={text}` is not a number of items; write a whole number")))?,
            None => usual,
        };
        let after = find(asked, &CURSORS).map(|(_, text)| text.to_owned()).unwrap_or_default();
        Ok(Paging { limit: limit.clamp(1, PAGE_MOST), after })
    }

    /// The cursor as a row number, for lists in the order of arrival.
    pub(crate) fn row(&self) -> Result<Option<i64>, Problem> {
        match self.after.as_str() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                Problem::bad(format!("`{text}` is not a place in this list; follow `nextLink` or start again"))
            }),
        }
    }

    /// This page of a list that is whole in memory; `place` must rise from item to item.
    pub(crate) fn cut<T>(&self, items: impl IntoIterator<Item = T>, place: impl Fn(&T) -> String) -> Cut<T> {
        let rest = items.into_iter().filter(|item| self.after.is_empty() || place(item) > self.after);
        let mut items: Vec<T> = rest.take(self.limit + 1).collect();
        let more = items.len() > self.limit;
        items.truncate(self.limit);
        let next = items.last().filter(|_| more).map(place);
        Cut { items, next }
    }

    /// This page of a list that is read piece by piece: `read(after, n)` gives the next `n` rows, `keep` picks.
    pub(crate) fn fill<T>(
        &self,
        mut read: impl FnMut(&str, i64) -> Result<Vec<T>, store::Error>,
        keep: impl Fn(&T) -> bool,
        place: impl Fn(&T) -> String,
    ) -> Result<Cut<T>, store::Error> {
        let mut after = self.after.clone();
        let mut items = Vec::new();
        let step = i64::try_from(self.limit + 1).unwrap_or(i64::MAX);
        while items.len() <= self.limit {
            let rows = read(&after, step)?;
            let Some(last) = rows.last() else { break };
            after = place(last);
            let short = rows.len() <= self.limit;
            items.extend(rows.into_iter().filter(|row| keep(row)));
            if short {
                break;
            }
        }
        let more = items.len() > self.limit;
        items.truncate(self.limit);
        let next = items.last().filter(|_| more).map(place);
        Ok(Cut { items, next })
    }
}

impl<T> Cut<T> {
    /// The page as its answer, with the address of the next.
    pub(crate) fn shown(
        &self,
        app: &App,
        uri: &Uri,
        asked: &HashMap<String, String>,
        view: impl Fn(&T) -> Value,
    ) -> Value {
        let link = self.next.as_deref().map(|cursor| next_link(app, uri, asked, cursor));
        super::views::page(self.items.iter().map(view).collect(), link)
    }
}

fn next_link(app: &App, uri: &Uri, asked: &HashMap<String, String>, cursor: &str) -> String {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let mut rest: Vec<String> = asked
        .iter()
        .filter(|(key, _)| !CURSORS.iter().any(|word| word.eq_ignore_ascii_case(key)))
        .map(|(key, value)| format!("&{}={}", encode(key).replace("%24", "$"), encode(value)))
        .collect();
    rest.sort();
    format!("{}{}?$skipToken={}{}", app.url, uri.path(), encode(cursor), rest.concat())
}

fn find<'a>(asked: &'a HashMap<String, String>, words: &[&str]) -> Option<(&'a str, &'a str)> {
    let known = |key: &str| words.iter().any(|word| word.eq_ignore_ascii_case(key));
    asked.iter().find(|(key, value)| known(key) && !value.is_empty()).map(|(k, v)| (k.as_str(), v.as_str()))
}

/// `tags=a=b,c`: every pair must be there; a lone word asks for the tag whatever its value.
pub(crate) fn tagged(asked: &HashMap<String, String>, tags: Option<&Value>) -> bool {
    let Some(wanted) = find(asked, &["tags", "$tags"]).map(|(_, text)| text) else { return true };
    let value = |key: &str| tags.and_then(|tags| tags.get(key));
    wanted.split(',').map(str::trim).filter(|pair| !pair.is_empty()).all(|pair| match pair.split_once('=') {
        Some((key, wanted)) => value(key.trim()).and_then(api::arm::scalar).is_some_and(|found| found == wanted.trim()),
        None => value(pair).is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn pages_show_every_item_once_whatever_arrives_between_them() {
        let mut names: Vec<String> = (0..10).map(|n| format!("n{n}0")).collect();
        let mut after = String::new();
        let mut seen = Vec::new();
        loop {
            let page = Paging { limit: 3, after: after.clone() }.cut(names.iter().cloned(), String::clone);
            seen.extend(page.items);
            // Before, inside and after what was shown.
            names.extend(["a", "n05"].map(str::to_owned));
            names.sort();
            names.dedup();
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        let expect: Vec<String> = (0..10).map(|n| format!("n{n}0")).collect();
        assert_eq!(seen, expect);
    }

    #[test]
    fn a_filtered_list_fills_its_pages_and_ends() {
        let rows: Vec<i64> = (1..=50).collect();
        let read = |after: &str, n: i64| {
            let after = after.parse::<i64>().unwrap_or(0);
            Ok(rows.iter().copied().filter(|row| *row > after).take(n as usize).collect())
        };
        let mut after = String::new();
        let mut seen = Vec::new();
        loop {
            let paging = Paging { limit: 4, after };
            let page = paging.fill(read, |row| row % 5 == 0, i64::to_string).unwrap();
            assert!(page.items.len() <= 4);
            seen.extend(page.items);
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        assert_eq!(seen, (1..=10).map(|n| n * 5).collect::<Vec<_>>());
    }

    #[test]
    fn a_page_size_is_a_number_within_bounds() {
        assert_eq!(Paging::of(&asked(&[("$top", "7")])).unwrap().limit, 7);
        assert_eq!(Paging::of(&asked(&[("COUNT", "99999")])).unwrap().limit, PAGE_MOST);
        assert_eq!(Paging::of(&asked(&[])).unwrap().limit, PAGE);
        assert!(Paging::of(&asked(&[("$top", "many")])).is_err());
        assert!(Paging { limit: 1, after: "x".into() }.row().is_err());
    }

    #[test]
    fn tags_filter_by_key_and_by_value() {
        let tags = json!({"team": "vision", "size": 3});
        for (wanted, fits) in [
            ("", true),
            ("team=vision", true),
            ("team", true),
            ("team=x", false),
            ("team=vision,size=3", true),
            ("none", false),
        ] {
            assert_eq!(tagged(&asked(&[("tags", wanted)]), Some(&tags)), fits, "{wanted}");
        }
    }
}
