package ytstream;

import java.util.Collections;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** The operator in a logical plan: of each key the row with the greatest value of one column. */
public final class NewestNode extends LogicalPlan {
  final scala.collection.Seq keys;
  final Attribute rank;
  final LogicalPlan child;

  public NewestNode(scala.collection.Seq keys, Attribute rank, LogicalPlan child) {
    this.keys = keys;
    this.rank = rank;
    this.child = child;
  }

  public scala.collection.immutable.Seq output() {
    return Lookup.sequence(Lookup.list(child.output()));
  }

  public scala.collection.immutable.Seq children() {
    return Lookup.sequence(Collections.singletonList(child));
  }

  public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new NewestNode(keys, rank, (LogicalPlan) children.apply(0));
  }

  /** Of Spark 3.5, whose Scala is 2.12. */
  public TreeNode withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return new NewestNode(keys, rank, (LogicalPlan) children.apply(0));
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
    return other instanceof NewestNode;
  }

  public boolean equals(Object other) {
    if (this == other) return true;
    if (!(other instanceof NewestNode)) return false;
    NewestNode node = (NewestNode) other;
    return keys.equals(node.keys) && rank.equals(node.rank) && child.equals(node.child);
  }
}
