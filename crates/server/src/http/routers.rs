//! Routers elsewhere: they tell what is asked of them and are told where replicas are.

use super::Body;
use crate::{
    app::App,
    auth::{Caller, Who},
    problem::Problem,
};
use axum::{Extension, Json, extract::State};
use domain::serving::{RouterAnswer, RouterNews};
use std::time::Duration;

/// How long an answer waits for other routes: no longer than demand may be old.
const WAIT: Duration = Duration::from_secs(1);

pub(crate) async fn exchange(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(news): Body<RouterNews>,
) -> Result<Json<RouterAnswer>, Problem> {
    let site = match &caller.who {
        Who::Cluster { name, .. } => name,
        _ => store::HERE,
    };
    Ok(Json(app.routers.exchange(site, news, WAIT).await?))
}
