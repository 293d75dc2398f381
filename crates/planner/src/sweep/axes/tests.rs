//! Spaces of every kind: what comes out of them, and back.

use super::*;
use crate::sweep::{chance::Chance, draw};
use serde_json::json;

fn axes(space: Value) -> Axes {
    Axes::of(&serde_json::from_value(space).unwrap(), None)
}

/// A space with everything in it.
fn everything() -> Axes {
    axes(json!({
        "a": {"type": "randint", "upper": 3},
        "b": {"type": "uniform", "min_value": -2, "max_value": 2},
        "c": {"type": "quniform", "min_value": 0.1, "max_value": 1, "q": 0.1},
        "d": {"type": "loguniform", "min_value": -6, "max_value": 0},
        "e": {"type": "qloguniform", "min_value": 0, "max_value": 5, "q": 2},
        "f": {"type": "normal", "mu": 10, "sigma": 2},
        "g": {"type": "qnormal", "mu": 10, "sigma": 2, "q": 1},
        "h": {"type": "lognormal", "mu": 0, "sigma": 1},
        "i": {"type": "qlognormal", "mu": 0, "sigma": 1, "q": 1},
        "j": {"type": "choice", "values": [1, "two", null, {
            "kind": "deep",
            "layers": {"type": "choice", "values": [1, 2, {"many": {"type": "randint", "upper": 9}}]},
            "rate": {"type": "uniform", "min_value": 0, "max_value": 1},
        }]},
    }))
}

/// Checks one number, and how often it must be so.
type Claim = (&'static str, fn(f64) -> bool, f64);

#[test]
fn every_range_gives_what_its_name_says() {
    let axes = everything();
    let claims: &[Claim] = &[
        ("a", |v| v.fract() == 0.0 && (0.0..3.0).contains(&v), 1.0),
        ("a", |v| v == 0.0, 1.0 / 3.0),
        ("b", |v| (-2.0..2.0).contains(&v), 1.0),
        ("b", |v| v < 0.0, 0.5),
        ("c", |v| (v * 10.0 - (v * 10.0).round()).abs() < 1e-9 && (0.1..=1.0).contains(&v), 1.0),
        ("c", |v| v == 0.3, 1.0 / 9.0),
        ("d", |v| ((-6.0_f64).exp()..1.0).contains(&v), 1.0),
        ("d", |v| v < (-3.0_f64).exp(), 0.5),
        ("e", |v| v % 2.0 == 0.0 && (0.0..=148.0).contains(&v), 1.0),
        ("f", |v| v < 10.0, 0.5),
        ("f", |v| (8.0..12.0).contains(&v), 0.6827),
        ("g", |v| v.fract() == 0.0, 1.0),
        ("h", |v| v > 0.0, 1.0),
        ("h", |v| v < 1.0, 0.5),
        ("i", |v| v.fract() == 0.0 && v >= 0.0, 1.0),
    ];
    for draw in [draw::random, draw::even] {
        let drawn: Vec<Values> = (0..2000).map(|number| axes.values(&draw(&axes, 4, number))).collect();
        for (at, (name, is_so, share)) in claims.iter().enumerate() {
            let count = drawn.iter().filter(|values| is_so(values[*name].as_f64().unwrap())).count();
            assert!(
                (count as f64 / 2000.0 - share).abs() < if *share == 1.0 { 1e-9 } else { 0.04 },
                "{name} {at}: {count}"
            );
        }
        let deep = drawn
            .iter()
            .filter(|values| values["j"]["layers"]["many"].is_u64() || values["j"]["layers"]["many"].is_i64());
        assert!((deep.count() as f64 / 2000.0 - 1.0 / 12.0).abs() < 0.03);
    }
}

#[test]
fn a_trial_is_found_again_where_it_was_drawn() {
    let axes = everything();
    for number in 0..500 {
        let point = draw::random(&axes, 9, number);
        let again = axes.point(&axes.values(&point)).unwrap();
        let apart = point.iter().zip(&again).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-9, "{point:?} {again:?}");
        assert_eq!(axes.values(&again).keys().count(), 10);
    }
}

#[test]
fn values_of_another_space_have_no_place() {
    let axes = axes(json!({"x": {"type": "choice", "values": ["a", {"k": 1, "y": {"type": "randint", "upper": 3}}]}}));
    let place = |values: Value| axes.point(&serde_json::from_value(values).unwrap());
    assert_eq!(place(json!({"x": "a"})), Some(vec![0.0, 0.5]));
    assert!(place(json!({"x": {"k": 1, "y": 2}})).is_some());
    for other in [json!({"x": "b"}), json!({}), json!({"x": {"k": 2, "y": 2}}), json!({"x": {"k": 1, "y": "no"}})] {
        assert_eq!(place(other.clone()), None, "{other}");
    }
}

#[test]
fn whole_steps_give_whole_numbers_and_no_dust() {
    let axes = axes(json!({
        "n": {"type": "quniform", "min_value": 1, "max_value": 64, "q": 1},
        "x": {"type": "quniform", "min_value": 0, "max_value": 1, "q": 0.1},
    }));
    for number in 0..50 {
        let values = axes.values(&draw::random(&axes, 1, number));
        assert!(values["n"].is_i64() || values["n"].is_u64());
        assert!(values["x"].to_string().len() <= 3, "{}", values["x"]);
    }
}

#[test]
fn the_base_of_logarithms_is_the_one_given() {
    let space = serde_json::from_value(json!({"x": {"type": "loguniform", "min_value": -3, "max_value": -2}})).unwrap();
    let axes = Axes::of(&space, Some(10.0));
    for number in 0..50 {
        let x = axes.values(&draw::random(&axes, 1, number))["x"].as_f64().unwrap();
        assert!((0.001..0.01).contains(&x), "{x}");
    }
}

#[test]
fn a_grid_has_every_combination_once() {
    let axes = axes(json!({
        "a": {"type": "choice", "values": [1, 2]},
        "m": {"type": "choice", "values": [
            "plain",
            {"kind": "x", "p": {"type": "choice", "values": [1, 2, 3]}, "q": {"type": "choice", "values": ["u", "v"]}},
        ]},
    }));
    assert_eq!(axes.count(), 2 * (1 + 3 * 2));
    let all: std::collections::BTreeSet<String> =
        (0..axes.count()).map(|n| serde_json::to_string(&axes.nth(n)).unwrap()).collect();
    assert_eq!(all.len(), 14);
    assert_eq!(serde_json::to_value(axes.nth(0)).unwrap(), json!({"a": 1, "m": "plain"}));
    assert_eq!(serde_json::to_value(axes.nth(7)).unwrap(), json!({"a": 2, "m": "plain"}));
}

#[test]
fn even_draws_leave_no_large_hole() {
    let axes = axes(json!({"x": {"type": "uniform", "min_value": 0, "max_value": 1}}));
    let mut places: Vec<f64> = (0..64).map(|number| draw::even(&axes, 2, number)[0]).collect();
    places.sort_by(f64::total_cmp);
    let widest = places.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
    assert!(widest <= 2.0 / 64.0, "{widest}");
}

#[test]
fn any_place_settles_where_it_stays() {
    let axes = everything();
    let mut chance = Chance::new(8);
    for _ in 0..300 {
        let point = axes.settled(axes.drawn(|_| chance.unit()));
        assert_eq!(axes.settled(point.clone()), point);
    }
}
