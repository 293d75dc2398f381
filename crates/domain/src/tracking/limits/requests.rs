//! Limits of a request as a whole: how much in one batch, how many results on one page.

use super::{MAX_BATCH_BYTES, MAX_ENTITIES_PER_BATCH, MAX_METRICS_PER_BATCH, MAX_PARAMS_PER_BATCH};
use crate::tracking::Bad;
use crate::tracking::text::quoted_list;
use std::collections::HashSet;

/// How many of each one batch may hold, and all of them together.
pub fn batch_counts(metrics: usize, params: usize, tags: usize) -> Result<(), Bad> {
    let rules = [
        ("metrics", MAX_METRICS_PER_BATCH, metrics),
        ("params", MAX_PARAMS_PER_BATCH, params),
        ("tags", MAX_PARAMS_PER_BATCH, tags),
        ("metrics, params, and tags", MAX_ENTITIES_PER_BATCH, metrics + params + tags),
    ];
    match rules.into_iter().find(|(_, most, count)| count > most) {
        None => Ok(()),
        Some((what, most, count)) => Err(Bad::value(format!(
            "A batch logging request can contain at most {most} {what}. Got {count} {what}. Please split up {what} \
             across multiple requests and try again."
        ))),
    }
}

/// How large the body of one batch may be.
pub fn batch_bytes(size: usize) -> Result<(), Bad> {
    if size <= MAX_BATCH_BYTES {
        return Ok(());
    }
    Err(Bad::value(format!(
        "Batched logging API requests must be at most {MAX_BATCH_BYTES} bytes, got a request of size {size}."
    )))
}

/// One batch gives a param at most once, even with the same value.
pub fn unique_params<'a>(keys: impl IntoIterator<Item = &'a str>) -> Result<(), Bad> {
    let mut seen = HashSet::new();
    let repeated: Vec<&str> = keys.into_iter().filter(|key| !seen.insert(*key)).collect();
    if repeated.is_empty() {
        return Ok(());
    }
    Err(Bad::value(format!(
        "Duplicate parameter keys have been submitted: {}. Please ensure the request contains only one param value per \
         param key.",
        quoted_list(repeated)
    )))
}

/// A question whose answer comes in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    Runs,
    Experiments,
    RegisteredModels,
    ModelVersions,
    LoggedModels,
    Webhooks,
    /// The history of one metric; without a number it comes whole.
    MetricHistory,
}

impl Search {
    /// The page size when the client names none; `None` means everything.
    pub fn default_results(self) -> Option<usize> {
        match self {
            Self::Runs | Self::Experiments => Some(1000),
            Self::RegisteredModels | Self::Webhooks => Some(100),
            Self::ModelVersions => Some(200_000),
            Self::LoggedModels => Some(50),
            Self::MetricHistory => None,
        }
    }

    /// The largest page; `None` where the protocol names no limit.
    pub fn most_results(self) -> Option<usize> {
        match self {
            Self::Runs | Self::Experiments => Some(50_000),
            Self::RegisteredModels | Self::Webhooks => Some(1000),
            Self::ModelVersions => Some(200_000),
            Self::LoggedModels | Self::MetricHistory => None,
        }
    }
}

/// The page size to use for what a client asked, `None` for everything.
pub fn max_results(search: Search, asked: Option<i64>) -> Result<Option<usize>, Bad> {
    let Some(asked) = asked else { return Ok(search.default_results()) };
    // Clients without a wish for logged models or webhooks send the zero of an unset number.
    if asked == 0 && matches!(search, Search::LoggedModels | Search::Webhooks) {
        return Ok(search.default_results());
    }
    let most = search.most_results();
    match usize::try_from(asked) {
        Ok(count) if count >= 1 && most.is_none_or(|most| count <= most) => Ok(Some(count)),
        Ok(count) if count >= 1 => Err(too_many(search, asked, most.unwrap_or(usize::MAX))),
        _ => Err(too_few(search, asked)),
    }
}

fn too_few(search: Search, asked: i64) -> Bad {
    Bad::value(match search {
        Search::ModelVersions => {
            format!("Invalid value for max_results. It must be a positive integer, but got {asked}")
        }
        Search::Webhooks => "max_results must be between 1 and 1000.".to_owned(),
        _ => format!("Invalid value {asked} for parameter 'max_results' supplied. It must be a positive integer"),
    })
}

fn too_many(search: Search, asked: i64, most: usize) -> Bad {
    Bad::value(match search {
        Search::RegisteredModels | Search::ModelVersions => {
            format!("Invalid value for request parameter max_results. It must be at most {most}, but got value {asked}")
        }
        Search::Webhooks => "max_results must be between 1 and 1000.".to_owned(),
        _ => format!("Invalid value {asked} for parameter 'max_results' supplied. It must be at most {most}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_measured_part_by_part_and_whole() {
        let cases = [
            ((1000, 0, 0), None),
            ((800, 100, 100), None),
            ((1001, 0, 0), Some("at most 1000 metrics. Got 1001 metrics.")),
            ((0, 101, 0), Some("at most 100 params. Got 101 params.")),
            ((0, 0, 101), Some("at most 100 tags. Got 101 tags.")),
            ((950, 51, 0), Some("at most 1000 metrics, params, and tags. Got 1001 metrics, params, and tags.")),
        ];
        for ((metrics, params, tags), expect) in cases {
            match (batch_counts(metrics, params, tags), expect) {
                (Ok(()), None) => {}
                (Err(bad), Some(part)) => assert!(bad.message.contains(part), "{bad}"),
                (got, _) => panic!("{metrics} {params} {tags}: {got:?}"),
            }
        }
        assert!(batch_bytes(MAX_BATCH_BYTES).is_ok());
        assert!(batch_bytes(MAX_BATCH_BYTES + 1).unwrap_err().message.ends_with("got a request of size 1000001."));
    }

    #[test]
    fn a_param_given_twice_in_one_batch_is_refused_by_name() {
        assert_eq!(unique_params(["a", "b"]), Ok(()));
        let bad = unique_params(["a", "a", "b'", "b'"]).unwrap_err();
        assert!(bad.message.contains("submitted: ['a', \"b'\"]. Please"), "{bad}");
    }

    #[test]
    fn pages_have_a_default_a_least_and_a_most() {
        use Search::*;
        let cases = [
            (Runs, None, Ok(Some(1000))),
            (Runs, Some(50_000), Ok(Some(50_000))),
            (
                Runs,
                Some(50_001),
                Err("Invalid value 50001 for parameter 'max_results' supplied. It must be at most 50000"),
            ),
            (Runs, Some(0), Err("Invalid value 0 for parameter 'max_results' supplied. It must be a positive integer")),
            (
                Experiments,
                Some(-3),
                Err("Invalid value -3 for parameter 'max_results' supplied. It must be a positive integer"),
            ),
            (RegisteredModels, None, Ok(Some(100))),
            (
                RegisteredModels,
                Some(1001),
                Err("Invalid value for request parameter max_results. It must be at most 1000, but got value 1001"),
            ),
            (ModelVersions, Some(0), Err("Invalid value for max_results. It must be a positive integer, but got 0")),
            (ModelVersions, Some(200_000), Ok(Some(200_000))),
            (LoggedModels, Some(0), Ok(Some(50))),
            (LoggedModels, Some(1_000_000), Ok(Some(1_000_000))),
            (MetricHistory, None, Ok(None)),
            (MetricHistory, Some(25_000), Ok(Some(25_000))),
            (Webhooks, Some(1001), Err("max_results must be between 1 and 1000.")),
        ];
        for (search, asked, expect) in cases {
            assert_eq!(max_results(search, asked).map_err(|bad| bad.message), expect.map_err(str::to_owned));
        }
    }
}
