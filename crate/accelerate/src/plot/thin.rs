//! Long series with no more points than can be seen.

/// Keeps, of each run of points in one column of pixels, the first, the lowest, the highest and the
/// last, so that no peak is lost. Points are in pixels.
pub(super) fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    points
        .chunk_by(|a, b| a.0.floor() == b.0.floor())
        .flat_map(|column| {
            let by_height = |a: &&usize, b: &&usize| column[**a].1.total_cmp(&column[**b].1);
            let indices: Vec<usize> = (0..column.len()).collect();
            let mut kept = vec![0, column.len() - 1];
            kept.extend(indices.iter().min_by(by_height));
            kept.extend(indices.iter().max_by(by_height));
            kept.sort_unstable();
            kept.dedup();
            kept.into_iter().map(|index| column[index])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_order_and_ends_are_kept() {
        let points: Vec<_> = (0..10_000).map(|i| (i as f64 / 100.0, (i % 7) as f64)).collect();
        let mut spiked = points.clone();
        spiked[5_042].1 = 1e6;
        spiked[7_013].1 = -1e6;
        let thinned = thin(&spiked);
        assert!(thinned.len() <= 400);
        assert!(thinned.contains(&spiked[5_042]) && thinned.contains(&spiked[7_013]));
        assert_eq!((thinned.first(), thinned.last()), (spiked.first(), spiked.last()));
        assert!(thinned.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn short_series_stay_as_they_are() {
        let points = [(0.0, 1.0), (10.0, 2.0), (20.0, 0.0)];
        assert_eq!(thin(&points), points);
    }
}
