//! The closed vocabularies of runs and model versions: statuses, views, lifecycles, stages.

use crate::tracking::Bad;
use crate::tracking::text::{quoted_list, shown};
use serde_json::Value;

/// Where a run is in its life, in the protocol's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    Running,
    Scheduled,
    Finished,
    Failed,
    Killed,
}

impl RunStatus {
    /// Every status in the order of its number on the wire, which starts at one.
    pub const ALL: [Self; 5] = [Self::Running, Self::Scheduled, Self::Finished, Self::Failed, Self::Killed];

    /// The word stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Scheduled => "SCHEDULED",
            Self::Finished => "FINISHED",
            Self::Failed => "FAILED",
            Self::Killed => "KILLED",
        }
    }

    /// A run in this status has ended.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Killed)
    }

    /// Reads a word, exactly as it is shown.
    pub fn parse(word: &str) -> Result<Self, Bad> {
        Self::ALL.into_iter().find(|status| status.as_str() == word).ok_or_else(|| {
            Bad::value(format!(
                "Could not get run status corresponding to string {}. Valid run status strings: {}",
                shown(word),
                quoted_list(Self::ALL.map(Self::as_str))
            ))
        })
    }

    /// Reads what a request holds: the word or its number.
    pub fn of_json(value: &Value) -> Result<Self, Bad> {
        numbered(&Self::ALL, value).map_or_else(|| Self::parse(&word(value)), Ok)
    }
}

/// Which lifecycle stages a search shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ViewType {
    #[default]
    ActiveOnly,
    DeletedOnly,
    All,
}

impl ViewType {
    /// Every view in the order of its number on the wire, which starts at one.
    pub const ALL: [Self; 3] = [Self::ActiveOnly, Self::DeletedOnly, Self::All];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ActiveOnly => "ACTIVE_ONLY",
            Self::DeletedOnly => "DELETED_ONLY",
            Self::All => "ALL",
        }
    }

    /// Whether a thing in this stage is shown.
    pub fn shows(self, stage: Lifecycle) -> bool {
        match self {
            Self::ActiveOnly => stage == Lifecycle::Active,
            Self::DeletedOnly => stage == Lifecycle::Deleted,
            Self::All => true,
        }
    }

    /// Reads a word in either case, as bodies and query strings hold it.
    pub fn parse(word: &str) -> Result<Self, Bad> {
        Self::ALL.into_iter().find(|view| view.as_str().eq_ignore_ascii_case(word)).ok_or_else(|| {
            Bad::value(format!(
                "Could not get valid view type corresponding to string {}. Valid view types are {}",
                shown(word),
                quoted_list(Self::ALL.map(Self::as_str))
            ))
        })
    }

    /// Reads what a request holds: the word or its number.
    pub fn of_json(value: &Value) -> Result<Self, Bad> {
        numbered(&Self::ALL, value).map_or_else(|| Self::parse(&word(value)), Ok)
    }
}

/// Whether a thing is there or waits to be purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifecycle {
    #[default]
    Active,
    Deleted,
}

impl Lifecycle {
    /// The word stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Deleted => "deleted",
        }
    }

    /// Reads a word, exactly as it is shown.
    pub fn parse(word: &str) -> Result<Self, Bad> {
        match word {
            "active" => Ok(Self::Active),
            "deleted" => Ok(Self::Deleted),
            _ => Err(Bad::value(format!("Invalid lifecycle stage '{}'", shown(word)))),
        }
    }
}

/// How far a model version has been promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    #[default]
    None,
    Staging,
    Production,
    Archived,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Self; 4] = [Self::None, Self::Staging, Self::Production, Self::Archived];

    /// The word stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Staging => "Staging",
            Self::Production => "Production",
            Self::Archived => "Archived",
        }
    }

    /// A move to this stage may archive the versions that hold it.
    pub fn can_archive_others(self) -> bool {
        matches!(self, Self::Staging | Self::Production)
    }

    /// Reads a word in any mixture of cases.
    pub fn parse(word: &str) -> Result<Self, Bad> {
        Self::ALL.into_iter().find(|stage| stage.as_str().eq_ignore_ascii_case(word)).ok_or_else(|| {
            Bad::value(format!(
                "Invalid Model Version stage: {}. Value must be one of {}.",
                shown(word),
                Self::ALL.map(Self::as_str).join(", ")
            ))
        })
    }
}

/// The item whose number, counted from one, the value holds; as a number or in text.
fn numbered<T: Copy>(all: &[T], value: &Value) -> Option<T> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    all.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_come_back_from_their_own_text_and_number() {
        for (at, status) in RunStatus::ALL.into_iter().enumerate() {
            assert_eq!(RunStatus::parse(status.as_str()), Ok(status));
            assert_eq!(RunStatus::of_json(&json!(at + 1)), Ok(status));
        }
        for (at, view) in ViewType::ALL.into_iter().enumerate() {
            assert_eq!(ViewType::of_json(&json!(view.as_str())), Ok(view));
            assert_eq!(ViewType::of_json(&json!((at + 1).to_string())), Ok(view));
        }
        for stage in Stage::ALL {
            assert_eq!(Stage::parse(&stage.as_str().to_uppercase()), Ok(stage));
        }
        assert_eq!(Lifecycle::parse(Lifecycle::Deleted.as_str()), Ok(Lifecycle::Deleted));
    }

    #[test]
    fn an_unknown_word_is_answered_with_those_that_are_known() {
        let bad = RunStatus::parse("running").unwrap_err();
        assert!(bad.message.ends_with("['RUNNING', 'SCHEDULED', 'FINISHED', 'FAILED', 'KILLED']"), "{bad}");
        let bad = Stage::parse("x").unwrap_err();
        assert_eq!(
            bad.message,
            "Invalid Model Version stage: x. Value must be one of None, Staging, Production, Archived."
        );
        for value in [json!(0), json!(4), json!("some"), json!(null), json!(-1), json!(1.5)] {
            assert!(ViewType::of_json(&value).is_err(), "{value}");
        }
        assert_eq!(Lifecycle::parse("gone").unwrap_err().message, "Invalid lifecycle stage 'gone'");
    }

    #[test]
    fn a_view_shows_what_its_name_says() {
        let shown = |view: ViewType| [Lifecycle::Active, Lifecycle::Deleted].map(|stage| view.shows(stage));
        assert_eq!(shown(ViewType::ActiveOnly), [true, false]);
        assert_eq!(shown(ViewType::DeletedOnly), [false, true]);
        assert_eq!(shown(ViewType::All), [true, true]);
        assert!(RunStatus::Killed.is_terminal() && !RunStatus::Scheduled.is_terminal());
    }
}
