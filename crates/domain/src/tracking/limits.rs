//! What a client may send: sizes, names, values and words, checked before anything is stored.
//!
//! Lengths count characters, not bytes. A param or tag value that is too long is cut, as clients
//! expect; a key that is too long is refused, because two cut keys could become one.

mod metric;
mod names;
mod requests;
mod values;
mod words;

pub use metric::{Number, integer, metric, metric_value, stored};
pub use names::{
    Place, alias, artifact_location, experiment_id, experiment_name, logged_model_name, metric_key, model_name,
    model_version, new_alias, new_model_name, param_key, run_id, run_name, tag_key, webhook_name,
};
pub use requests::{Search, batch_bytes, batch_counts, max_results, unique_params};
pub use values::{Dataset, dataset, experiment_tag, input_tag, model_version_tag, param, registered_model_tag, tag};
pub use words::{Lifecycle, RunStatus, Stage, ViewType};

/// Params, and tags, in one batch.
pub const MAX_PARAMS_PER_BATCH: usize = 100;
/// Metrics in one batch.
pub const MAX_METRICS_PER_BATCH: usize = 1000;
/// Everything in one batch together.
pub const MAX_ENTITIES_PER_BATCH: usize = 1000;
/// Bytes of one batch request, as documented to clients.
pub const MAX_BATCH_BYTES: usize = 1_000_000;
/// Keys of metrics, params and tags.
pub const MAX_KEY_CHARS: usize = 250;
/// A param's value; more is cut.
pub const MAX_PARAM_CHARS: usize = 6000;
/// A run tag's value; more is cut.
pub const MAX_TAG_CHARS: usize = 8000;
/// An experiment's name.
pub const MAX_EXPERIMENT_NAME_CHARS: usize = 500;
/// An experiment tag's value; more is refused.
pub const MAX_EXPERIMENT_TAG_CHARS: usize = 20_000;
/// The value of a tag of a registered model or model version; more is refused.
pub const MAX_MODEL_TAG_CHARS: usize = 100_000;
/// A registered model's alias.
pub const MAX_ALIAS_CHARS: usize = 255;
/// The place an experiment keeps its artifacts.
pub const MAX_ARTIFACT_LOCATION_CHARS: usize = 2048;
