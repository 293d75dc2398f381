//! Points there and back, hostile bytes, and the laws of series.

use super::*;

/// A generator of our own: same seed, same draws.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn value(&mut self, kind: u64) -> f64 {
        const ODD: [f64; 10] = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            0.0,
            -0.0,
            f64::MAX,
            f64::MIN_POSITIVE,
            f64::EPSILON,
            9_007_199_254_740_993.0,
            5e-324,
        ];
        match kind {
            0 => self.unit(),
            1 => f64::from(self.unit() as f32),
            2 => (self.unit() * 1e4).round() / 1e4,
            3 => self.below(1000) as f64,
            4 => f64::from_bits(self.next()),
            5 => ODD[self.below(10) as usize],
            6 => 1.5,
            _ => {
                let kind = self.below(7);
                self.value(kind)
            }
        }
    }

    fn series(&mut self, kind: u64, length: usize) -> Vec<Point> {
        let (mut timestamp_ms, mut step) = (1_700_000_000_000, 0);
        let wild = self.below(8) == 0;
        (0..length)
            .map(|_| {
                timestamp_ms += 100 + self.below(40) as i64;
                step += 1;
                let value = self.value(kind);
                if wild {
                    return Point { timestamp_ms: self.next() as i64, step: self.next() as i64, value };
                }
                Point { timestamp_ms, step, value }
            })
            .collect()
    }
}

fn bits(points: &[Point]) -> Vec<(i64, i64, u64)> {
    points.iter().map(|point| (point.timestamp_ms, point.step, point.value.to_bits())).collect()
}

fn point(step: i64, timestamp_ms: i64, value: f64) -> Point {
    Point { timestamp_ms, step, value }
}

#[test]
fn every_series_comes_back_bit_for_bit() {
    let mut chance = Chance(42);
    for round in 0..3000 {
        let length = chance.below(if round % 100 == 0 { 5000 } else { 40 }) as usize;
        let points = chance.series(round % 8, length);
        assert_eq!(bits(&decode(&encode(&points)).unwrap()), bits(&points), "round {round}");
    }
}

#[test]
fn nan_keeps_its_payload_and_infinities_their_sign() {
    let odd = [0x7ff8_0000_0000_0001, 0xfff8_0000_0000_0000, 0x7ff0_0000_0000_0001, 0x7ff0_0000_0000_0000, 1 << 63];
    let points: Vec<Point> = odd.iter().map(|bits| point(0, 0, f64::from_bits(*bits))).collect();
    assert_eq!(bits(&decode(&encode(&points)).unwrap()), bits(&points));
    for one in points {
        assert_eq!(bits(&decode(&encode(&[one])).unwrap()), bits(&[one]));
    }
}

#[test]
fn blocks_one_behind_the_other_are_one_series() {
    let mut chance = Chance(3);
    let (a, b) = (chance.series(7, 30), chance.series(7, 1));
    let mut bytes = encode(&a);
    encode_into(&[], &mut bytes);
    encode_into(&b, &mut bytes);
    assert_eq!(bits(&decode(&bytes).unwrap()), bits(&[a, b].concat()));
    assert_eq!((encode(&[]), decode(&[])), (Vec::new(), Ok(Vec::new())));
}

#[test]
fn a_batch_comes_back_grouped_by_key() {
    let mut chance = Chance(9);
    for round in 0..500 {
        let length = 1 + chance.below(60) as usize;
        let points = chance.series(7, length);
        let keys: Vec<String> = points.iter().map(|_| format!("layer/{}/é", chance.below(9))).collect();
        let logged: Vec<(&str, Point)> = keys.iter().map(String::as_str).zip(points.iter().copied()).collect();
        let groups = decode_batch(&encode_batch(&logged)).unwrap();
        let mut firsts: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut seen = std::collections::HashSet::new();
        firsts.retain(|key| seen.insert(*key));
        assert_eq!(groups.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), firsts, "round {round}");
        for (key, group) in groups {
            let expect: Vec<Point> = logged.iter().filter(|(name, _)| *name == key).map(|(_, point)| *point).collect();
            assert_eq!(bits(&group), bits(&expect), "round {round}");
        }
    }
    assert_eq!((encode_batch(&[]), decode_batch(&[])), (Vec::new(), Ok(Vec::new())));
}

#[test]
fn common_series_cost_few_bytes_a_point() {
    let mut chance = Chance(11);
    // The bounds are what was measured, plus little: a change that costs a byte a point fails here.
    let cases =
        [("doubles", 0, 9.3), ("float32", 1, 5.2), ("decimals", 2, 4.3), ("counts", 3, 3.3), ("constant", 6, 2.3)];
    for (name, kind, most) in cases {
        chance.0 = 5;
        let points: Vec<Point> =
            chance.series(kind, 1000).into_iter().enumerate().map(|(at, p)| Point { step: at as i64, ..p }).collect();
        let each = encode(&points).len() as f64 / points.len() as f64;
        assert!(each <= most, "{name}: {each} bytes a point");
    }
}

#[test]
fn damaged_bytes_are_refused_and_never_cost_more_than_they_hold() {
    let mut chance = Chance(77);
    for round in 0..4000 {
        let length = 1 + chance.below(30) as usize;
        let points = chance.series(round % 8, length);
        let keys: Vec<(&str, Point)> = points.iter().map(|point| ("key", *point)).collect();
        for mut bytes in [encode(&points), encode_batch(&keys)] {
            match chance.below(3) {
                0 => bytes.truncate(chance.below(bytes.len() as u64) as usize),
                1 => {
                    let at = chance.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << chance.below(8);
                }
                _ => bytes.iter_mut().for_each(|byte| *byte = chance.next() as u8),
            }
            let most = bytes.len() * 2;
            assert!(decode(&bytes).is_ok_and(|points| points.len() <= most) || decode(&bytes).is_err());
            let _ = decode_batch(&bytes);
        }
    }
    for bytes in
        [&[1, 0][..], &[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], &[9], &[1], &[2, 0], &[2, 1, 0xff]]
    {
        assert!(decode(bytes).is_err() && decode_batch(bytes).is_err(), "{bytes:?}");
    }
    let corrupt = decode(&[1, 1, 0, 0, 7]).unwrap_err();
    assert_eq!(corrupt.to_string(), "metric points are damaged at byte 5: values written in no known way");
}

#[test]
fn the_latest_point_has_the_greatest_step_then_time_then_value() {
    let cases = [
        (vec![point(1, 9, 5.0), point(2, 1, 0.0)], point(2, 1, 0.0)),
        (vec![point(2, 3, 1.0), point(2, 4, 0.0), point(1, 99, 9.0)], point(2, 4, 0.0)),
        (vec![point(1, 1, 1.0), point(1, 1, 3.0), point(1, 1, 2.0)], point(1, 1, 3.0)),
        (vec![point(1, 1, f64::INFINITY), point(1, 1, f64::MAX)], point(1, 1, f64::INFINITY)),
    ];
    for (points, expect) in cases {
        assert_eq!(latest(&points), Some(expect));
    }
    let not_a_number = point(1, 1, f64::NAN);
    assert!(is_later(&not_a_number, &point(1, 1, -1.0)) && is_later(&point(1, 1, 0.5), &not_a_number));
    assert!(!is_later(&point(1, 1, 0.0), &point(1, 1, -0.0)) && !is_later(&not_a_number, &not_a_number));
    assert_eq!(latest(&[]), None);
}

#[test]
fn a_history_runs_by_time_then_step_then_value() {
    let mut points = vec![point(2, 5, 1.0), point(1, 5, 2.0), point(1, 5, 1.0), point(9, 4, 0.0)];
    points.sort_by(history_order);
    assert_eq!(points, [point(9, 4, 0.0), point(1, 5, 1.0), point(1, 5, 2.0), point(2, 5, 1.0)]);
}

#[test]
fn a_point_sent_twice_is_one_point() {
    let nan = point(1, 1, f64::NAN);
    let points = [
        point(1, 1, 0.5),
        nan,
        point(1, 1, 0.5),
        nan,
        point(1, 2, 0.5),
        point(2, 1, 0.5),
        point(1, 1, 0.0),
        point(1, 1, -0.0),
    ];
    let kept = dedup(&points);
    assert_eq!(kept.len(), 5);
    assert_eq!(kept[0], point(1, 1, 0.5));
    assert!(kept[1].value.is_nan());
}

#[test]
fn a_thinned_series_keeps_its_ends_and_its_extremes() {
    let mut chance = Chance(21);
    let mut points: Vec<Point> = (0..10_000).map(|at| point(at, at, chance.unit())).collect();
    (points[4321].value, points[8765].value, points[50].value) = (7.0, -7.0, f64::NAN);
    for most in [4, 5, 10, 100, 999, 9_999] {
        let thin = downsample(&points, most);
        assert!(thin.len() <= most, "{} of {most}", thin.len());
        assert!(thin.len() * 2 > most || most < 6, "{} of {most} is a waste", thin.len());
        assert_eq!((thin[0], thin[thin.len() - 1]), (points[0], points[9_999]));
        assert!(thin.contains(&points[4321]) && thin.contains(&points[8765]), "{most}");
        assert!(thin.windows(2).all(|pair| pair[0].step < pair[1].step), "in order, none twice");
    }
    let lengths = [0, 1, 2, 3, 10_000, 20_000].map(|most| downsample(&points, most).len());
    assert_eq!(lengths, [0, 1, 2, 3, 10_000, 10_000]);
    assert_eq!(downsample(&points, 1), [points[9_999]]);
    assert_eq!(downsample(&points, 3)[1], points[4321]);
    assert_eq!(downsample(&[], 5), []);
    let nans = vec![point(0, 0, f64::NAN); 100];
    assert_eq!(downsample(&nans, 10).len(), 6);
}
