//! Computes the cost of an answer.

use super::message::{Cost, Usage};
use super::model::ModelCost;

impl Usage {
    /// Sets `total_tokens` to the sum of the parts.
    pub(super) fn sum_tokens(&mut self) {
        self.total_tokens = self
            .input
            .saturating_add(self.output)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write);
    }

    /// Sets `cost`. `prices` are in US dollars per million tokens.
    pub(super) fn price(&mut self, prices: &ModelCost) {
        let sent = (self.input)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write);
        let tiers = prices.tiers.iter();
        let tier = tiers
            .filter(|tier| sent > tier.input_tokens_above)
            .max_by_key(|tier| tier.input_tokens_above);
        let [input, output, cache_read, cache_write] = match tier {
            Some(tier) => [tier.input, tier.output, tier.cache_read, tier.cache_write],
            None => [
                prices.input,
                prices.output,
                prices.cache_read,
                prices.cache_write,
            ],
        };
        // Dividing first gives the same digits as the original in session files.
        let cost = |price: f64, tokens: u64| price / 1e6 * tokens as f64;
        self.cost = Cost {
            input: cost(input, self.input),
            output: cost(output, self.output),
            cache_read: cost(cache_read, self.cache_read),
            cache_write: cost(cache_write, self.cache_write),
            total: 0.0,
        };
        self.cost.sum();
    }
}

impl Cost {
    fn sum(&mut self) {
        self.total = self.input + self.output + self.cache_read + self.cache_write;
    }

    /// Multiplies the cost, for service tiers with a price relative to the list price.
    pub(super) fn scale(&mut self, factor: f64) {
        for part in [
            &mut self.input,
            &mut self.output,
            &mut self.cache_read,
            &mut self.cache_write,
        ] {
            *part *= factor;
        }
        self.sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CostTier;

    #[test]
    fn tokens_times_price_per_million() {
        let mut usage = Usage {
            input: 1_000_000,
            output: 500_000,
            cache_read: 2_000_000,
            cache_write: 100_000,
            ..Usage::default()
        };
        usage.sum_tokens();
        usage.price(&ModelCost {
            input: 3.0,
            output: 15.0,
            cache_read: 0.25,
            cache_write: 5.0,
            tiers: Vec::new(),
        });
        let mut cost = Cost {
            input: 3.0,
            output: 7.5,
            cache_read: 0.5,
            cache_write: 0.5,
            total: 11.5,
        };
        assert_eq!((usage.total_tokens, usage.cost), (3_600_000, cost));
        cost.scale(2.0);
        assert_eq!(cost.total, 23.0);
    }

    #[test]
    fn long_requests_have_prices_of_their_own() {
        let tier = |input_tokens_above: u64, input: f64| CostTier {
            input_tokens_above,
            input,
            ..CostTier::default()
        };
        let prices = ModelCost {
            input: 1.0,
            tiers: vec![tier(300_000, 4.0), tier(100_000, 2.0)],
            ..ModelCost::default()
        };
        for (input, cost) in [(100_000, 0.1), (200_000, 0.4), (500_000, 2.0)] {
            let mut usage = Usage {
                input,
                ..Usage::default()
            };
            usage.price(&prices);
            assert!((usage.cost.total - cost).abs() < 1e-9, "{:?}", usage.cost);
        }
    }
}
