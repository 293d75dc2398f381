//! Routers elsewhere: they tell what is asked of them and are told where replicas are.

use super::Body;
use crate::{app::App, problem::Problem};
use axum::{Json, extract::State};
use domain::serving::{RouterAnswer, RouterNews};
use std::time::Duration;

/// How long an answer waits for other routes: no longer than demand may be old.
const WAIT: Duration = Duration::from_secs(1);

pub(crate) async fn exchange(
    State(app): State<App>,
    Body(news): Body<RouterNews>,
) -> Result<Json<RouterAnswer>, Problem> {
    Ok(Json(app.routers.exchange(news, WAIT).await?))
}
