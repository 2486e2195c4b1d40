//! Refuses joins that would not fit into memory: once both sides are known, and before any result is computed. No other
//! file changes polars' plans; this one inserts steps into them, and its tests run the polars we build with.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, OnceLock},
};

use handlescope_model::guard::lock;
use polars::prelude::{
    DataFrame, DataType, Expr, IntoLazy, JoinArgs, JoinType, LazyFrame, PlSmallStr, PolarsResult,
    col, len, polars_bail,
};
use polars_plan::{
    plans::{AExpr, FunctionIR, IR, expr_ir::ExprIR, node_to_expr},
    prelude::{Arena, Node},
};

/// Maximum size of a join, rows times columns: 2 GiB of numbers.
const MAX_VALUES: u64 = 1 << 28;

/// A join that was refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TooLarge {
    /// Number of rows it would have.
    pub rows: f64,
    /// Number of rows allowed.
    pub most: u64,
}

/// The first join that was refused.
pub type RefusedJoin = Arc<OnceLock<TooLarge>>;

/// Runs a query; each of its joins checks its sides first.
///
/// # Errors
/// If the query cannot be executed, or one of its joins is refused.
pub fn collect(query: LazyFrame, refused: &RefusedJoin) -> PolarsResult<DataFrame> {
    query._collect_post_opt(|root, plans, expressions, _| {
        limit_joins(root, plans, expressions, refused);
        Ok(())
    })
}

/// Makes every join of a plan check its sides before it is executed.
fn limit_joins(
    root: Node,
    plans: &mut Arena<IR>,
    expressions: &Arena<AExpr>,
    refused: &RefusedJoin,
) {
    let (mut waiting, mut seen) = (vec![root], HashSet::new());
    while let Some(node) = waiting.pop() {
        if !seen.insert(node) {
            continue;
        }
        let plan = plans.get(node);
        plan.copy_inputs(&mut waiting);
        let IR::Join { input_left, input_right, .. } = plan else { continue };
        let Some(join) = Join::new(plan, expressions, refused).map(Arc::new) else { continue };
        let sides = [(0, *input_left), (1, *input_right)];
        let [left, right] = sides.map(|(side, input)| plans.add(look(side, input, &join)));
        if let IR::Join { input_left, input_right, .. } = plans.get_mut(node) {
            (*input_left, *input_right) = (left, right);
        }
    }
}

/// Creates a plan step that passes one side of a join on, unless the join is too large.
fn look(side: usize, input: Node, join: &Arc<Join>) -> IR {
    let join = Arc::clone(join);
    let function = FunctionIR::Opaque {
        function: Arc::new(move |rows: DataFrame| join.pass(side, rows)),
        schema: None,
        predicate_pd: false,
        projection_pd: false,
        streamable: false,
        fmt_str: PlSmallStr::from_static("limit"),
    };
    IR::MapFunction { input, function }
}

/// A join of a plan.
struct Join {
    /// Keys that must be equal on each side; without keys, every row meets every other.
    keys: [Vec<Expr>; 2],
    /// Number of rows the query takes from it.
    limit: u64,
    /// Maximum number of rows.
    most: u64,
    sides: Mutex<[Option<DataFrame>; 2]>,
    refused: RefusedJoin,
}

impl Join {
    /// Returns the join of a plan; `None` if it cannot have more rows than one of its sides.
    fn new(plan: &IR, expressions: &Arena<AExpr>, refused: &RefusedJoin) -> Option<Join> {
        let IR::Join { left_on, right_on, options, schema, .. } = plan else { return None };
        if matches!(options.args.how, JoinType::Semi | JoinType::Anti) {
            return None;
        }
        let is_equal = options.options.is_none();
        let keys = [left_on, right_on].map(|keys: &Vec<ExprIR>| {
            keys.iter()
                .filter(|_| is_equal)
                .map(|key| node_to_expr(key.node(), expressions))
                .collect()
        });
        let slice = options.args.slice.filter(|_| is_equal);
        Some(Join {
            keys,
            limit: slice.map_or(u64::MAX, |(_, rows)| rows as u64),
            most: MAX_VALUES / schema.len().max(1) as u64,
            sides: Mutex::default(),
            refused: Arc::clone(refused),
        })
    }

    /// Passes a side on; the second one to arrive checks the size of the join.
    fn pass(&self, side: usize, rows: DataFrame) -> PolarsResult<DataFrame> {
        let both = {
            let mut sides = lock(&self.sides);
            if let Some(slot) = sides.get_mut(side) {
                *slot = Some(rows.clone());
            }
            match &mut *sides {
                [left @ Some(_), right @ Some(_)] => left.take().zip(right.take()),
                _ => None,
            }
        };
        if let Some((left, right)) = both {
            self.check(left, right)?;
        }
        Ok(rows)
    }

    fn check(&self, left: DataFrame, right: DataFrame) -> PolarsResult<()> {
        let pairs = left.height() as f64 * right.height() as f64;
        let [left_keys, _] = &self.keys;
        // A few pairs need no count, and polars numbers the rows of a product with a u32.
        if pairs <= self.most as f64
            || (left_keys.is_empty() && pairs <= f64::from(u32::MAX) && self.limit <= self.most)
        {
            return Ok(());
        }
        let rows = if left_keys.is_empty() { pairs } else { self.matches(left, right)? };
        if rows > self.most as f64 {
            let _ = self.refused.set(TooLarge { rows, most: self.most });
            polars_bail!(ComputeError: "the join is too large");
        }
        Ok(())
    }

    /// Returns an upper bound for the rows of a join on equal keys: matches, and all rows unmatched.
    fn matches(&self, left: DataFrame, right: DataFrame) -> PolarsResult<f64> {
        let unmatched = (left.height() + right.height()) as f64;
        let [left_keys, right_keys] = &self.keys;
        let names: Vec<String> = (0..left_keys.len()).map(|key| format!("key{key}")).collect();
        let columns: Vec<Expr> = names.iter().map(col).collect();
        let counted = |rows: DataFrame, keys: &[Expr], count: &str| {
            let keys = keys.iter().zip(&names).map(|(key, name)| key.clone().alias(name));
            let keys = rows.lazy().select(keys.collect::<Vec<_>>()).drop_nulls(None);
            keys.group_by(columns.clone()).agg([len().cast(DataType::Float64).alias(count)])
        };
        let (left, right) = (counted(left, left_keys, "left"), counted(right, right_keys, "right"));
        let both =
            left.join(right, columns.clone(), columns.clone(), JoinArgs::new(JoinType::Inner));
        let sum = both.select([(col("left") * col("right")).sum()]).collect()?;
        let matched = sum.column("left")?.f64()?.get(0).unwrap_or_default();
        Ok(matched + unmatched)
    }
}

#[cfg(test)]
mod tests {
    use polars::prelude::{Column, SortMultipleOptions, lit};

    use super::*;

    /// Returns `rows` rows with a number each, `distinct` of them different.
    fn numbers(rows: i64, distinct: i64) -> LazyFrame {
        let numbers: Vec<i64> = (0..rows).map(|row| row % distinct).collect();
        DataFrame::new_infer_height(vec![Column::new("n".into(), numbers)]).expect("rows").lazy()
    }

    fn joined(left: LazyFrame, right: LazyFrame, how: JoinType) -> LazyFrame {
        left.join(right, [col("n")], [col("n")], JoinArgs::new(how))
    }

    /// Returns the number of rows of an answer, or how large the refused join would have been.
    fn rows(query: LazyFrame) -> Result<usize, Option<TooLarge>> {
        let refused = RefusedJoin::default();
        let answer = collect(query, &refused);
        match refused.get() {
            Some(refused) => Err(Some(*refused)),
            None => answer.map(|frame| frame.height()).map_err(|_| None),
        }
    }

    /// Returns a join with 4 000 000 000 pairs, and half as many rows.
    fn large(how: JoinType) -> LazyFrame {
        joined(numbers(40_000, 2), numbers(100_000, 2), how)
    }

    #[test]
    fn a_join_that_does_not_fit_is_refused_wherever_it_stands_in_the_plan() {
        let expected =
            |rows: f64, columns: u64| Err(Some(TooLarge { rows, most: MAX_VALUES / columns }));
        let input_rows = 140_000.0;
        for how in [JoinType::Inner, JoinType::Left, JoinType::Full] {
            let columns = if how == JoinType::Full { 2 } else { 1 };
            assert_eq!(rows(large(how.clone())), expected(2e9 + input_rows, columns), "{how:?}");
        }
        let outer_plans: [fn(LazyFrame) -> LazyFrame; 5] = [
            |join: LazyFrame| join.filter(col("n").gt(lit(0))),
            |join: LazyFrame| join.sort(["n"], SortMultipleOptions::default()),
            |join: LazyFrame| join.group_by([col("n")]).agg([len()]),
            |join: LazyFrame| joined(join, numbers(3, 3), JoinType::Inner),
            |join: LazyFrame| joined(numbers(3, 3), join, JoinType::Left),
        ];
        for plan in outer_plans {
            assert!(matches!(rows(plan(large(JoinType::Inner))), Err(Some(_))));
        }
        let product = numbers(40_000, 2).cross_join(numbers(100_000, 2), None);
        assert_eq!(rows(product), expected(4e9, 2));
    }

    #[test]
    fn a_join_within_the_limit_has_all_its_rows() {
        for (query, expected) in [
            (joined(numbers(100, 10), numbers(50, 10), JoinType::Inner), 500),
            (joined(numbers(100, 100), numbers(50, 50), JoinType::Left), 100),
            (joined(numbers(100_000, 100_000), numbers(80_000, 80_000), JoinType::Inner), 80_000),
            (large(JoinType::Semi), 40_000),
            (large(JoinType::Anti), 0),
            (numbers(100, 10).cross_join(numbers(50, 10), None), 5_000),
        ] {
            assert_eq!(rows(query.clone()), Ok(expected));
            assert_eq!(query.collect().expect("rows").height(), expected);
        }
        let shared = numbers(100, 10);
        let twice = joined(shared.clone(), shared, JoinType::Inner);
        assert_eq!(rows(twice), Ok(1_000), "of one plan twice");
    }
}
