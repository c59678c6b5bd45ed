//! Charts as a reader sees them.
#![allow(clippy::unwrap_used)]

use candle_accelerate::plot::{BarChart, Histogram, LineChart, ScatterChart, Theme};

/// The coordinates of every polyline.
fn curves(svg: &str) -> Vec<Vec<(f64, f64)>> {
    svg.split("<polyline points=\"")
        .skip(1)
        .map(|rest| {
            let points = rest.split_once('"').unwrap().0.split_whitespace();
            let number = |text: &str| text.parse().unwrap();
            points
                .map(|p| p.split_once(',').map(|(x, y)| (number(x), number(y))).unwrap())
                .collect()
        })
        .collect()
}

#[test]
fn a_million_points_make_a_small_figure_that_keeps_the_peak() {
    let mut values: Vec<f64> = (0..1_000_000).map(|i| (i as f64 * 0.01).sin()).collect();
    values[654_321] = 50.0;
    let svg = LineChart::new("long").series("wave", &values).to_svg().unwrap();
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
    let curve = &curves(&svg)[0];
    let peak = curve.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    let (left, right) = (curve[0].0, curve[curve.len() - 1].0);
    let share = (peak.0 - left) / (right - left);
    assert!((share - 0.654_321).abs() < 0.002, "{share}");
    let ordinary = curve.iter().filter(|point| point.1 > peak.1 + 100.0).count();
    assert_eq!(ordinary, curve.len() - 1);
}

#[test]
fn points_are_drawn_where_the_axes_say() {
    let svg = LineChart::new("").series("line", [0.0, 5.0, 10.0]).to_svg().unwrap();
    let curve = &curves(&svg)[0];
    assert!((curve[1].0 - (curve[0].0 + curve[2].0) / 2.0).abs() < 0.11);
    assert!((curve[1].1 - (curve[0].1 + curve[2].1) / 2.0).abs() < 0.11);
    assert!(curve[0].1 > curve[2].1, "upwards is up");

    let chart = LineChart::new("").log_y(true).series("line", [1.0, 10.0, 100.0]);
    let curve = &curves(&chart.to_svg().unwrap())[0];
    assert!((curve[1].1 - (curve[0].1 + curve[2].1) / 2.0).abs() < 0.11);
}

#[test]
fn values_that_are_not_finite_are_gaps() {
    let values = [1.0, 2.0, f64::NAN, 3.0, 4.0, f64::INFINITY, 5.0, 6.0];
    let svg = LineChart::new("gaps").series("loss", values).to_svg().unwrap();
    assert_eq!(curves(&svg).iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2]);
    let svg = LineChart::new("gaps").log_y(true).series("loss", [1.0, 2.0, 0.0, 3.0, 4.0]);
    assert_eq!(curves(&svg.to_svg().unwrap()).len(), 2);
    let svg = LineChart::new("alone").series("loss", [f64::NAN, 3.0]).to_svg().unwrap();
    assert!(svg.contains("<circle"));
}

#[test]
fn nothing_to_draw_is_a_clear_error() {
    let nan = [f64::NAN, f64::INFINITY];
    let errors = [
        LineChart::new("empty").to_svg(),
        LineChart::new("empty").series("loss", nan).to_svg(),
        BarChart::new("empty").to_svg(),
        BarChart::new("empty").bar("a", f64::NAN).to_svg(),
        Histogram::new("empty").series("loss", nan).to_svg(),
        ScatterChart::new("empty").series("loss", [(f64::NAN, 1.0)]).to_svg(),
    ];
    for result in errors {
        let message = result.unwrap_err().to_string();
        assert_eq!(message, "chart 'empty' has no finite values to draw");
    }
    let error = LineChart::new("empty").log_y(true).series("loss", [0.0, -1.0]).to_svg();
    assert!(error.unwrap_err().to_string().contains("above 0"));
}

#[test]
fn extreme_values_do_not_panic() {
    let values = [
        vec![f64::MAX, f64::MIN],
        vec![f64::MIN_POSITIVE, 0.0],
        vec![1e300, 1e-300],
        vec![7.0, 7.0],
        vec![0.0],
        vec![-3.0],
    ];
    for values in values {
        for log in [false, true] {
            let _ = LineChart::new("extreme").log_y(log).series("x", &values).to_svg();
        }
        let _ = Histogram::new("extreme").series("x", &values).to_svg();
        let _ = ScatterChart::new("extreme").series("x", values.iter().map(|v| (v, v))).to_svg();
        let _ = values.iter().fold(BarChart::new("extreme"), |chart, v| chart.bar("x", v)).to_svg();
    }
    let chart = LineChart::new("small")
        .size(0, 0)
        .series("a name that is longer than the figure is wide", [1, 2]);
    assert!(chart.to_svg().is_ok());
}

#[test]
fn names_are_escaped() {
    let svg = LineChart::new("a < b & \"c\"").series("<script>", [1, 2]).to_svg().unwrap();
    assert!(svg.contains("a &lt; b &amp; &quot;c&quot;") && !svg.contains("<script>"));
}

#[test]
fn coinciding_series_differ_in_width_and_dashes() {
    let loss = [0.7f32, 0.5, 0.3];
    let svg = LineChart::new("twice").series("a", loss).series("b", loss).to_svg().unwrap();
    let curves = curves(&svg);
    assert_eq!(curves[0], curves[1]);
    assert!(svg.contains("stroke-width=\"6\"") && svg.contains("stroke-dasharray=\"9 6\""));
}

#[test]
fn the_legend_is_above_the_data() {
    let svg =
        LineChart::new("title").series("a name", [1, 2]).series("b", [2, 1]).to_svg().unwrap();
    let legend: f64 = svg
        .split("<text")
        .find(|text| text.contains("a name"))
        .unwrap()
        .split_once("y=\"")
        .unwrap()
        .1
        .split_once('"')
        .unwrap()
        .0
        .parse()
        .unwrap();
    let top = curves(&svg).concat().into_iter().map(|point| point.1).fold(f64::MAX, f64::min);
    assert!(legend < top, "{legend} {top}");
}

#[test]
fn text_is_at_least_13_pixels_high() {
    let chart = LineChart::new("title").x_label("step").y_label("loss").series("a", [1, 2]);
    let svg = chart.to_svg().unwrap();
    let sizes = svg.split("font-size=\"").skip(1);
    let sizes: Vec<f64> = sizes.map(|s| s.split_once('"').unwrap().0.parse().unwrap()).collect();
    assert!(sizes.len() > 8 && sizes.iter().all(|size| *size > 12.99), "{sizes:?}");
}

#[test]
fn themes_have_their_background_and_auto_has_none() {
    let svg = |theme| LineChart::new("t").theme(theme).series("a", [1, 2]).to_svg().unwrap();
    assert!(svg(Theme::Light).contains("fill=\"#ffffff\""));
    assert!(svg(Theme::Dark).contains("fill=\"#111111\""));
    assert!(!svg(Theme::Auto).contains("height=\"400\" fill"));
}

#[test]
fn bars_are_as_long_as_their_values() {
    let chart = BarChart::new("bars").bar("one", 1.0).bar("three", 3).bar("minus one", -1.0);
    let svg = chart.to_svg().unwrap();
    let widths: Vec<f64> = svg
        .split("<rect x=")
        .skip(1)
        .filter(|rect| rect.contains("<title>"))
        .map(|rect| {
            rect.split_once("width=\"").unwrap().1.split_once('"').unwrap().0.parse().unwrap()
        })
        .collect();
    assert_eq!(widths.len(), 3);
    assert!((widths[1] / widths[0] - 3.0).abs() < 0.01 && (widths[2] - widths[0]).abs() < 0.2);
    assert!(svg.contains(">-1</text>") && svg.contains("minus one"));
    let labels = svg.matches("text-anchor=\"end\"").count();
    assert_eq!(labels, 4, "three categories and the value of the bar to the left");
}

#[test]
fn a_chart_is_saved_and_described_in_plain_text() {
    let chart = LineChart::new("Loss").series("train", [0.75, 0.5]);
    let content = chart.content().unwrap();
    assert_eq!(
        content.get("text/plain"),
        Some("Line chart: Loss\n  train: 2 points, from 0.75 to 0.5")
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loss.svg");
    chart.save(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), chart.to_svg().unwrap());
    let error = chart.save(folder.path().join("no/such/folder.svg")).unwrap_err();
    assert!(error.to_string().contains("folder.svg"));
}
