//! The little linear algebra that a Gaussian process needs: square matrices of a few hundred rows.
//!
//! Rows lie one after another, and every inner loop runs along them, which is what makes it quick.

/// A square matrix. Of symmetric and of triangular ones only the lower half is looked at.
#[derive(Debug, Clone)]
pub(super) struct Square {
    pub(super) size: usize,
    cells: Vec<f64>,
}

impl Square {
    pub(super) fn zero(size: usize) -> Square {
        Square { size, cells: vec![0.0; size * size] }
    }

    pub(super) fn row(&self, at: usize) -> &[f64] {
        &self.cells[at * self.size..][..self.size]
    }

    pub(super) fn row_mut(&mut self, at: usize) -> &mut [f64] {
        &mut self.cells[at * self.size..][..self.size]
    }

    /// The lower triangle `l` of a symmetric matrix `l l'`; `None` when there is none.
    pub(super) fn cholesky(mut self) -> Option<Square> {
        for i in 0..self.size {
            let (above, from) = self.cells.split_at_mut(i * self.size);
            let row = &mut from[..self.size];
            for j in 0..i {
                let other = &above[j * self.size..][..self.size];
                row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
            }
            let rest = row[i] - dot(&row[..i], &row[..i]);
            if !(rest > 0.0 && rest.is_finite()) {
                return None;
            }
            row[i] = rest.sqrt();
        }
        Some(self)
    }

    /// Of a triangle: `x` such that `l x = b`.
    pub(super) fn solve(&self, mut b: Vec<f64>) -> Vec<f64> {
        for i in 0..self.size {
            let row = self.row(i);
            b[i] = (b[i] - dot(&row[..i], &b[..i])) / row[i];
        }
        b
    }

    /// Of a triangle: `x` such that `l' x = b`.
    pub(super) fn solve_transposed(&self, mut b: Vec<f64>) -> Vec<f64> {
        for i in (0..self.size).rev() {
            let row = self.row(i);
            b[i] /= row[i];
            let (before, from) = b.split_at_mut(i);
            add(before, -from[0], &row[..i]);
        }
        b
    }

    /// Of a triangle: the inverse of `l l'`.
    pub(super) fn inverse_of_product(&self) -> Square {
        let mut inverse = Square::zero(self.size);
        for i in 0..self.size {
            let row = self.row(i);
            let (above, from) = inverse.cells.split_at_mut(i * self.size);
            let into = &mut from[..self.size];
            for j in 0..i {
                add(&mut into[..=j], -row[j], &above[j * self.size..][..=j]);
            }
            into[i] = 1.0;
            into[..=i].iter_mut().for_each(|cell| *cell /= row[i]);
        }
        let mut product = Square::zero(self.size);
        for k in 0..self.size {
            let row = inverse.row(k);
            for i in 0..=k {
                add(&mut product.row_mut(i)[..=i], row[i], &row[..=i]);
            }
        }
        product
    }
}

/// Four sums at once, which the processor adds side by side.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(x, y)| x * y).sum();
    let mut sums = [0.0; 4];
    for (x, y) in a4.zip(b4) {
        for lane in 0..4 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

/// Adds `factor * b` to `a`.
pub(super) fn add(a: &mut [f64], factor: f64, b: &[f64]) {
    for (x, y) in a.iter_mut().zip(b) {
        *x += factor * y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::chance::Chance;

    /// `m m' + 1`, which is positive.
    fn positive(size: usize) -> Square {
        let mut chance = Chance::new(3);
        let m: Vec<Vec<f64>> = (0..size).map(|_| (0..size).map(|_| chance.normal()).collect()).collect();
        let mut out = Square::zero(size);
        for i in 0..size {
            for j in 0..size {
                out.row_mut(i)[j] = dot(&m[i], &m[j]) + f64::from(u8::from(i == j));
            }
        }
        out
    }

    #[test]
    fn what_is_solved_gives_the_right_side_again() {
        for size in [1, 2, 5, 23] {
            let matrix = positive(size);
            let triangle = matrix.clone().cholesky().unwrap();
            let right: Vec<f64> = (0..size).map(|i| i as f64 - 1.5).collect();
            let x = triangle.solve_transposed(triangle.solve(right.clone()));
            let inverse = triangle.inverse_of_product();
            for (i, expected) in right.iter().enumerate() {
                assert!((dot(matrix.row(i), &x) - expected).abs() < 1e-9);
                let by_inverse: f64 = (0..size).map(|j| inverse.row(i.max(j))[i.min(j)] * right[j]).sum();
                assert!((by_inverse - x[i]).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn a_matrix_that_is_not_positive_has_no_triangle() {
        let mut matrix = Square::zero(2);
        matrix.row_mut(0)[0] = 1.0;
        matrix.row_mut(1).copy_from_slice(&[2.0, 1.0]);
        assert!(matrix.cholesky().is_none());
    }
}
