package ytstream;

import java.util.ArrayList;
import java.util.Collections;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.physical.ClusteredDistribution;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkPlan;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;

/**
 * The operator in a physical plan. Its rows come sorted by key, from Spark's own sort, which writes to the disk what does
 * not fit. Spark's max() of a struct would sort them too, and then copy each row in two aggregations without generated code
 * (Spark, AggUtils and SortAggregateExec).
 */
public final class NewestExec extends SparkPlan {
  private final scala.collection.Seq keys;
  private final Attribute rank;
  private final SparkPlan child;

  public NewestExec(scala.collection.Seq keys, Attribute rank, SparkPlan child) {
    this.keys = keys;
    this.rank = rank;
    this.child = child;
  }

  public RDD doExecute() {
    ArrayList bound = new ArrayList();
    for (Iterator each = keys.iterator(); each.hasNext(); ) bound.add(bound((Attribute) each.next()));
    return new NewestOf(child.execute(), Lookup.sequence(bound), ascending(bound(rank)), child.output().size());
  }

  private Expression bound(Attribute column) {
    int at = 0;
    for (Iterator each = child.output().iterator(); each.hasNext(); at++) {
      if (((Attribute) each.next()).exprId().equals(column.exprId())) {
        return new BoundReference(at, column.dataType(), column.nullable());
      }
    }
    throw new IllegalStateException("the column " + column + " is lost");
  }

  /** As Spark's max() compares: null is the least. */
  private static SortOrder ascending(Expression value) {
    return new SortOrder(value, Ascending$.MODULE$, NullsFirst$.MODULE$, Nil$.MODULE$);
  }

  public scala.collection.immutable.Seq requiredChildDistribution() {
    ClusteredDistribution all = new ClusteredDistribution(Lookup.sequence(Lookup.list(keys)), false, Option.empty());
    return Lookup.sequence(Collections.singletonList(all));
  }

  public scala.collection.immutable.Seq requiredChildOrdering() {
    ArrayList orders = new ArrayList();
    for (Iterator each = keys.iterator(); each.hasNext(); ) orders.add(ascending((Expression) each.next()));
    return Lookup.sequence(Collections.singletonList(Lookup.sequence(orders)));
  }

  public scala.collection.immutable.Seq output() {
    return Lookup.sequence(Lookup.list(child.output()));
  }

  public scala.collection.immutable.Seq children() {
    return Lookup.sequence(Collections.singletonList(child));
  }

  public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new NewestExec(keys, rank, (SparkPlan) children.apply(0));
  }

  /** Of Spark 3.5, whose Scala is 2.12. */
  public TreeNode withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return new NewestExec(keys, rank, (SparkPlan) children.apply(0));
  }

  public Object productElement(int n) {
    if (n == 0) return keys;
    if (n == 1) return rank;
    return child;
  }

  public int productArity() {
    return 3;
  }

  public boolean canEqual(Object other) {
    return other instanceof NewestExec;
  }

  public boolean equals(Object other) {
    if (this == other) return true;
    if (!(other instanceof NewestExec)) return false;
    NewestExec node = (NewestExec) other;
    return keys.equals(node.keys) && rank.equals(node.rank) && child.equals(node.child);
  }
}
