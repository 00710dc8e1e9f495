//! Least squares with coefficients that cannot be negative, for a handful of columns.

/// Smallest share of the observations' squares that residuals are taken for.
const SMALLEST_RESIDUALS: f64 = 1e-12;

/// Sums of squares and products of weighted rows, from which any subset of the columns can be fitted.
#[derive(Debug, Clone)]
pub(super) struct NormalEquations<const N: usize> {
    /// Sums of products of each two columns.
    gram: [[f64; N]; N],
    /// Sums of products of each column and the observed value.
    moments: [f64; N],
    /// Sum of squares of the observed values.
    square: f64,
    rows: usize,
}

/// Result of a fit: one coefficient for each column, zero for a column that does not contribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fit<const N: usize> {
    pub coefficients: [f64; N],
    /// Inverse of the fitted columns' matrix; zero in the rows and columns that do not contribute.
    inverse: [[f64; N]; N],
    /// Variance of the residuals of the weighted rows.
    pub residual_variance: f64,
    /// Number of rows less the number of fitted columns.
    pub degrees_of_freedom: usize,
}

impl<const N: usize> NormalEquations<N> {
    pub fn new() -> Self {
        Self { gram: [[0.0; N]; N], moments: [0.0; N], square: 0.0, rows: 0 }
    }

    /// Adds a row with the values of all columns and the observed value, both multiplied by the weight.
    pub fn add(&mut self, row: [f64; N], observed: f64, weight: f64) {
        let (row, observed) = (row.map(|value| value * weight), observed * weight);
        for (sums, left) in self.gram.iter_mut().zip(row) {
            for (sum, right) in sums.iter_mut().zip(row) {
                *sum += left * right;
            }
        }
        for (sum, value) in self.moments.iter_mut().zip(row) {
            *sum += value * observed;
        }
        self.square += observed * observed;
        self.rows += 1;
    }

    /// Fits the columns that explain the observations, with coefficients of at least zero; `None` with too few rows.
    ///
    /// A fit with nonnegative coefficients is the unconstrained fit of some subset of the columns (Lawson and Hanson,
    /// Solving Least Squares Problems, chapter 23). With so few columns every subset is tried. The one with the smallest
    /// Bayesian information criterion is chosen, so that a column is used only if it explains more than chance.
    pub fn fit(&self) -> Option<Fit<N>> {
        let fits = (0..1_u32 << N).filter_map(|set| self.fit_subset(set));
        fits.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, fit)| fit)
    }

    /// Returns the information criterion and the fit of a set of columns, given as bits; `None` if a coefficient is
    /// negative or the columns depend on each other.
    fn fit_subset(&self, set: u32) -> Option<(f64, Fit<N>)> {
        let used = set.count_ones() as usize;
        let degrees_of_freedom = self.rows.checked_sub(used).filter(|rest| *rest > 0)?;
        let inverse = self.inverse(set)?;
        let coefficients =
            inverse.map(|row| row.iter().zip(self.moments).map(|(left, right)| left * right).sum());
        coefficients.iter().all(|value: &f64| *value >= 0.0 && value.is_finite()).then_some(())?;
        let explained: f64 = coefficients.iter().zip(self.moments).map(|(left, right)| left * right).sum();
        let residuals = (self.square - explained).max(0.0);
        let residual_variance = residuals / degrees_of_freedom as f64;
        let rows = self.rows as f64;
        // Rounding errors are no residuals.
        let unexplained = (residuals / self.square).max(SMALLEST_RESIDUALS);
        let criterion = rows * unexplained.ln() + used as f64 * rows.ln();
        Some((criterion, Fit { coefficients, inverse, residual_variance, degrees_of_freedom }))
    }

    /// Inverts the matrix of the columns in the set by Gauss-Jordan elimination; `None` if they depend on each other.
    fn inverse(&self, set: u32) -> Option<[[f64; N]; N]> {
        /// Smallest share of a column's square that must remain after the columns before it are accounted for.
        const MIN_INDEPENDENT: f64 = 1e-9;
        let is_used = |column: usize| set >> column & 1 == 1;
        let mut matrix = self.gram;
        let mut inverse = [[0.0; N]; N];
        for column in (0..N).filter(|column| is_used(*column)) {
            inverse[column][column] = 1.0;
        }
        for pivot in (0..N).filter(|column| is_used(*column)) {
            let value = matrix[pivot][pivot];
            (value > MIN_INDEPENDENT * self.gram[pivot][pivot]).then_some(())?;
            for column in 0..N {
                matrix[pivot][column] /= value;
                inverse[pivot][column] /= value;
            }
            for row in (0..N).filter(|row| *row != pivot && is_used(*row)) {
                let factor = matrix[row][pivot];
                for column in 0..N {
                    matrix[row][column] -= factor * matrix[pivot][column];
                    inverse[row][column] -= factor * inverse[pivot][column];
                }
            }
        }
        Some(inverse)
    }
}

impl<const N: usize> Fit<N> {
    /// Returns the fitted value of a row.
    pub fn at(&self, row: [f64; N]) -> f64 {
        self.coefficients.iter().zip(row).map(|(left, right)| left * right).sum()
    }

    /// Returns the variance of the fitted value of a row.
    pub fn variance_at(&self, row: [f64; N]) -> f64 {
        let product =
            |line: &[f64; N]| -> f64 { line.iter().zip(row).map(|(left, right)| left * right).sum() };
        let quadratic: f64 = self.inverse.iter().zip(row).map(|(line, left)| left * product(line)).sum();
        self.residual_variance * quadratic.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn equations(rows: &[([f64; 3], f64)]) -> NormalEquations<3> {
        let mut equations = NormalEquations::new();
        rows.iter().for_each(|(row, observed)| equations.add(*row, *observed, 1.0));
        equations
    }

    #[test]
    fn exact_coefficients_are_found() {
        let row = |x: f64, y: f64| ([1.0, x, y], 2.0 + 3.0 * x + 0.5 * y);
        let fit = equations(&[row(0.0, 1.0), row(1.0, 5.0), row(2.0, 0.0), row(7.0, 3.0)]).fit().unwrap();
        let expected = [2.0, 3.0, 0.5];
        assert!(fit.coefficients.iter().zip(expected).all(|(found, right)| (found - right).abs() < 1e-9));
        assert!(fit.residual_variance < 1e-12 && fit.degrees_of_freedom == 1);
    }

    #[test]
    fn a_coefficient_that_would_be_negative_is_zero() {
        let row = |x: f64| ([1.0, x, 0.0], 5.0 - x);
        let fit = equations(&[row(0.0), row(1.0), row(2.0)]).fit().unwrap();
        assert_eq!(fit.coefficients, [4.0, 0.0, 0.0], "the mean");
    }

    #[test]
    fn a_column_that_explains_no_more_than_chance_is_not_used() {
        let noise = |index: i32| 0.1 * f64::from(index * 37 % 11 - 5);
        let row = |index: i32| {
            ([1.0, f64::from(index), f64::from(index * 53 % 17)], f64::from(3 * index) + noise(index))
        };
        let rows: Vec<_> = (0..40).map(row).collect();
        let fit = equations(&rows).fit().unwrap();
        assert!((fit.coefficients[1] - 3.0).abs() < 0.02 && fit.coefficients[2] == 0.0, "{fit:?}");
    }

    #[test]
    fn columns_that_depend_on_each_other_are_not_both_fitted() {
        let row = |x: f64| ([1.0, x, 2.0 * x], 1.0 + x);
        let fit = equations(&[row(1.0), row(2.0), row(3.0)]).fit().unwrap();
        assert!((fit.at([1.0, 4.0, 8.0]) - 5.0).abs() < 1e-9);
        assert_eq!(fit.coefficients.iter().filter(|value| **value == 0.0).count(), 1);
    }

    proptest! {
        #[test]
        fn coefficients_are_never_negative(
            rows in proptest::collection::vec((prop::array::uniform3(0.0..10.0f64), 0.1..100.0f64), 5..12),
        ) {
            let fit = equations(&rows).fit().unwrap();
            prop_assert!(fit.coefficients.iter().all(|value| *value >= 0.0));
            prop_assert!(fit.residual_variance >= 0.0 && fit.variance_at([1.0, 2.0, 3.0]) >= 0.0);
        }
    }
}
