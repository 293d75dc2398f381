//! Everyone who waits or holds something, each with a place of their own, as the planner wants it.

use domain::{
    Timestamp,
    sharing::{Holder, fair},
};
use planner::Share;
use std::collections::HashMap;
use store::{Error, HeldRow, Tx};

#[derive(Default)]
pub(super) struct People {
    places: HashMap<Holder, usize>,
    shares: Vec<Share>,
}

impl People {
    /// Those who hold something, with what that counts as.
    pub(super) fn of(rows: &[HeldRow]) -> People {
        let mut people = People::default();
        for row in rows {
            let place = people.place(&row.held.holder);
            let share = &mut people.shares[place];
            share.used += row.busy as f64 + row.pending as f64 / 1000.0 * fair::AT_LEAST_MS as f64;
            share.turn = share.turn.max(row.turn);
        }
        people
    }

    pub(super) fn place(&mut self, holder: &Holder) -> usize {
        if let Some(place) = self.places.get(holder) {
            return *place;
        }
        self.shares.push(Share { holder: holder.clone(), ..Share::default() });
        self.places.insert(holder.clone(), self.shares.len() - 1);
        self.shares.len() - 1
    }

    /// With what their ended jobs have used.
    pub(super) fn shares(mut self, tx: &mut Tx<'_>, now: Timestamp, half_life_ms: i64) -> Result<Vec<Share>, Error> {
        for share in &mut self.shares {
            share.used += tx.used(&share.holder, now, half_life_ms)?;
        }
        Ok(self.shares)
    }
}
