//! The order of the objects: temporal locality by the distance in a stack of recently used objects.

use crate::fileset::surge::stack_distances;
use units::Stream;

/// Number of positions on either side of the drawn one from which an object is chosen, as a share
/// of the objects. The paper mentions a window without its width: this width gives the distances of
/// the published run of 1998 up to their third quartile, and shorter ones in the far tail.
const WINDOW_SHARE: f64 = 0.4;

/// Orders the objects, each as often as its count. A distance is drawn for every step, scaled so
/// that the largest distance is the number of objects; of the objects around that depth, one is
/// chosen by its remaining count, and moves to the top.
pub(super) fn order(counts: &[u64], stream: &mut Stream) -> Vec<u32> {
    let total: u64 = counts.iter().sum();
    let law = stack_distances();
    let distances: Vec<f64> = (0..total).map(|_| law.draw(stream)).collect();
    let largest = distances.iter().copied().fold(1.0, f64::max);
    let scale = counts.len() as f64 / largest;
    let mut left = counts.to_vec();
    let mut stack: Vec<u32> = (0..).zip(counts).filter(|(_, c)| **c > 0).map(|(o, _)| o).collect();
    super::shuffle(&mut stack, stream);
    let width = (counts.len() as f64 * WINDOW_SHARE).ceil() as usize;
    let mut order = Vec::with_capacity(total as usize);
    for distance in distances {
        let depth = ((distance * scale) as usize).min(stack.len() - 1);
        let at = {
            let start = depth.saturating_sub(width);
            let end = (depth + width + 1).min(stack.len());
            start + chosen(&stack[start..end], &left, stream)
        };
        let object = stack[at];
        order.push(object);
        left[object as usize] -= 1;
        if left[object as usize] == 0 {
            stack.remove(at);
        } else {
            stack[..=at].rotate_right(1);
        }
    }
    order
}

/// Chooses a place in the window by the remaining counts.
fn chosen(window: &[u32], left: &[u64], stream: &mut Stream) -> usize {
    let sum: u64 = window.iter().map(|object| left[*object as usize]).sum();
    let mut point = stream.below(sum);
    let found = window.iter().position(|object| {
        let count = left[*object as usize];
        let here = point < count;
        point = point.wrapping_sub(count);
        here
    });
    found.expect("what is left of each object in the stack is above zero")
}
