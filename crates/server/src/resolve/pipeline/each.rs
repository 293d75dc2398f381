//! Loops over items: known in advance, each is a turn of its own; made by a step, one turn is planned and written out
//! when they are there ([`domain::pipeline::Each`]).

use super::{Known, Made, Scope, Tie, Turn, Weaver, feed::Feed, leaf::job_name};
use api::{
    arm::{
        pipeline::read::{self, Given},
        scalar,
        tree::some,
    },
    blob::sha256,
};
use domain::{
    Place, Plan, PlannedOutput,
    assignment::OutputMode,
    pipeline::{self, Each, Fallback, ITEMS, Source, Step, StepJob},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::{Error, NOWHERE};

/// The items of a loop.
enum Items {
    /// A word for each, and the inputs it gives.
    Known(Vec<(String, BTreeMap<String, Feed>)>),
    Made(Made),
}

impl Weaver<'_, '_> {
    /// One turn for each item, so many at once; outputs of the same name lie together in one folder.
    pub(super) fn parallel_for(
        &mut self,
        scope: &Scope<'_>,
        known: &mut Known,
        name: &str,
        around: Tie,
        (body, inner): (&str, &Value),
    ) -> Result<BTreeMap<String, Made>, Error> {
        let node = &scope.nodes[name];
        let most = some(node, "max_concurrency").and_then(scalar).and_then(|text| text.parse::<usize>().ok());
        let most = most.filter(|most| *most > 0);
        match self.items(scope, known, &format!("jobs.{}{name}.items", scope.path), &node["items"]) {
            Some(Items::Known(items)) => self.for_known(scope, known, items, (most, around), (body, inner)),
            Some(Items::Made(items)) => {
                let own_path = format!("{}{name}", scope.path);
                let at = self.for_made(scope, known, (&own_path, around), items, (body, inner))?;
                if let Some(each) = self.graph.steps.get_mut(at).and_then(|step| step.each.as_mut()) {
                    each.at_once = most;
                }
                self.made_together(at, &format!("{}{body}", scope.path))
            }
            None => Ok(BTreeMap::new()),
        }
    }

    fn for_known(
        &mut self,
        scope: &Scope<'_>,
        known: &mut Known,
        items: Vec<(String, BTreeMap<String, Feed>)>,
        (most, around): (Option<usize>, Tie),
        (body, inner): (&str, &Value),
    ) -> Result<BTreeMap<String, Made>, Error> {
        let mut tie = Tie { fresh: true, ..around };
        if let Some(most) = most {
            tie.group = Some(self.graph.groups.len());
            self.graph.groups.push(most);
        }
        let path = format!("{}{body}", scope.path);
        let mut all: BTreeMap<String, Made> = BTreeMap::new();
        for (at, (item, given)) in items.into_iter().enumerate() {
            let turn =
                Turn { path: format!("{path}.{at}"), given, looped: true, gathered: Some(item), tie: tie.clone() };
            let (made, _) = self.node(scope, known, inner, &turn)?;
            if self.stop || !self.lookup.bad.is_empty() {
                break;
            }
            for (output, made) in made.into_iter().filter(|(output, _)| output != "artifacts") {
                match all.get_mut(&output) {
                    Some(whole) => whole.source.steps.extend(made.source.steps),
                    None => {
                        let folder = Some(self.gathered(&path, &output)?);
                        all.insert(output, Made { folder, kind: "uri_folder".to_owned(), ..made });
                    }
                }
            }
        }
        Ok(all)
    }

    /// The step of a loop whose items come from another: its place in the graph.
    fn for_made(
        &mut self,
        scope: &Scope<'_>,
        known: &mut Known,
        (own_path, around): (&str, Tie),
        items: Made,
        (body, inner): (&str, &Value),
    ) -> Result<usize, Error> {
        let (path, first) = (format!("{}{body}", scope.path), self.graph.steps.len());
        let mark = format!("each-{}", &sha256(format!("{}/{path}", self.job).as_bytes())[..12]);
        let values = self.values(scope, known, inner, &path)?;
        let marked = |name: &String| (name.clone(), Feed::Literal(Each::mark_of(&mark, name)));
        let given = values.keys().map(marked).collect();
        let turn = Turn {
            path: format!("{path}.{mark}"),
            given,
            looped: true,
            gathered: Some(mark.clone()),
            // Whether it runs at all is for the whole loop to say.
            tie: Tie { fresh: true, ..Tie::default() },
        };
        if !job_name(self.job, &turn.path).as_str().contains(&mark) {
            self.lookup.mistake(format!("jobs.{path}"), "the path of the loop is too long", "shorten the names in it");
        }
        let (made, _) = self.node(scope, known, inner, &turn)?;
        // Whoever is told of a mistake knows the step by its own name.
        for wrong in &mut self.lookup.bad {
            wrong.key = wrong.key.replace(&format!(".{mark}"), "");
        }
        let steps = self.graph.steps.split_off(first);
        // A loop inside of a turn is not among the steps of this pipeline.
        self.graph.limited.retain(|limited| limited.source.steps.iter().all(|at| *at < first));
        let Tie { when, group, .. } = around;
        let mut step = Step { name: own_path.to_owned(), when, group, ..Step::default() };
        step.bound.insert(ITEMS.to_owned(), items.source);
        let each = Each { values, ..Each::of(mark, first, steps, &mut step) };
        step.each = Some(Box::new(each));
        let name = job_name(self.job, own_path);
        let body = json!({"jobType": "Pipeline", "displayName": own_path, "experimentName": self.experiment, "jobs": {},
            "inputs": {}, "outputs": {}, "settings": {}, "properties": {}, "tags": {}});
        let artifacts =
            Place::Folder { path: self.lookup.app.files.artifacts(&self.lookup.workspace.name, name.as_str()) };
        let mut plan = Plan { artifacts, ..Plan::default() };
        for output in made.into_keys().filter(|output| output != "artifacts") {
            let uri = self.gathered(&path, &output)?;
            plan.outputs.extend(self.folder(&uri)?.map(|planned| (output, planned)));
        }
        step.job = StepJob { name: Some(name), body, plan, cluster: NOWHERE.to_owned(), ..StepJob::default() };
        self.graph.steps.push(step);
        Ok(first)
    }

    /// What the loop at a place in the graph leaves: a folder for each output.
    fn made_together(&mut self, at: usize, path: &str) -> Result<BTreeMap<String, Made>, Error> {
        let outputs: Vec<String> = self.graph.steps[at].job.plan.outputs.keys().cloned().collect();
        let one = |output: String| {
            let folder = Some(self.gathered(path, &output)?);
            let source = Source { steps: vec![at], output: output.clone(), optional: false };
            Ok((output, Made { source, kind: "uri_folder".to_owned(), folder }))
        };
        outputs.into_iter().map(one).collect()
    }

    /// The folder at an address, as an output.
    pub(super) fn folder(&mut self, uri: &str) -> Result<Option<PlannedOutput>, Error> {
        let place = self.lookup.output_place("outputs", uri)?;
        Ok(place.map(|place| PlannedOutput { place, mode: OutputMode::RwMount, uri: uri.to_owned(), file: false }))
    }

    /// The values that items may give to what a loop runs.
    fn values(
        &mut self,
        scope: &Scope<'_>,
        known: &Known,
        inner: &Value,
        path: &str,
    ) -> Result<BTreeMap<String, Fallback>, Error> {
        let component = match read::component(inner) {
            Some(reference) => self.component(&format!("jobs.{path}"), reference)?,
            None => None,
        };
        let own = self.fed(scope, known, inner, &Turn { path: path.to_owned(), ..Turn::default() });
        let mut values = BTreeMap::new();
        for (name, port) in component.iter().flat_map(|component| read::ports(component, "inputs")) {
            let fallback = match (own.get(&name), &port.default) {
                _ if !port.is_literal() => continue,
                (Some(Feed::Literal(text)), _) | (None, Some(text)) => Fallback::Text(text.clone()),
                (None, None) if port.optional => Fallback::Absent,
                (None, None) => Fallback::Missing,
                _ => continue,
            };
            values.insert(name, fallback);
        }
        Ok(values)
    }

    /// The items of a loop; `None` after a mistake was noted.
    fn items(&mut self, scope: &Scope<'_>, known: &Known, key: &str, sent: &Value) -> Option<Items> {
        let feed = match sent {
            Value::String(text) => match read::binding(text) {
                Some(binding) => self.bound(scope, known, key, &binding),
                None => Some(Feed::Literal(text.clone())),
            },
            _ => None,
        };
        let value = match feed {
            Some(Feed::Made(made, _)) if made.folder.is_none() => return Some(Items::Made(made)),
            Some(Feed::Literal(text)) => serde_json::from_str(&text).unwrap_or(Value::Null),
            _ => sent.clone(),
        };
        let Some(items) = pipeline::items(&value) else {
            let fix = "write a list of maps, a map of maps or either as JSON text, or bind an output of a step that holds one";
            self.lookup.mistake(key, "the loop has no items", fix);
            return None;
        };
        let mut feed = |value: &Value| match read::given(value)?.0 {
            Given::Literal(text) => Some(Feed::Literal(text)),
            Given::Data(data) => Some(Feed::Data(data)),
            Given::Bound(binding) => self.bound(scope, known, key, &binding),
        };
        let known = items.into_iter().map(|(word, item)| {
            let given = item.iter().filter_map(|(name, value)| Some((name.clone(), feed(value)?)));
            (word, given.collect())
        });
        Some(Items::Known(known.collect()))
    }
}
