package ytstream;

import java.util.ArrayList;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.AttributeSet$;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator$;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.execution.CodegenSupport;
import org.apache.spark.sql.execution.CollectMetricsExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType;
import scala.Option;
import scala.collection.Iterator;

/**
 * Observes rows inside of generated code. Spark's own operator of Dataset.observe() stands outside of it: each row is
 * copied in front of it, and aggregated by code that is generated for it alone (CollectMetricsExec, AggregatingAccumulator).
 *
 * It is one of Spark's, so that QueryExecution.observedMetrics() finds it. Where Spark does not generate code for a part of
 * the plan, it works as Spark's does.
 */
public final class ObservedExec extends CollectMetricsExec implements CodegenSupport {
  // Not for tasks: operators with state send them the plan below.
  private final transient Metrics metrics;
  private transient CodegenSupport parent;
  private transient Tally tally;
  private transient boolean isGenerated;

  public ObservedExec(String name, Metrics metrics, SparkPlan child) {
    super(name, metrics.named, child);
    this.metrics = metrics;
  }

  /** What is observed. Not expressions of the operator: Spark generates no code for one that has a JSON function. */
  static final class Metrics {
    final scala.collection.immutable.List named;
    /** The aggregate functions, in the same order. */
    final ArrayList functions = new ArrayList();
    /** How many bytes the lines of all tasks may have. */
    int all;

    private Metrics(scala.collection.Seq named) {
      this.named = named.toList();
    }

    /** Return what is to be observed; null where it takes more than Tally can count. */
    static Metrics of(scala.collection.Seq named) {
      Metrics found = new Metrics(named);
      for (Iterator each = named.iterator(); each.hasNext(); ) {
        Object one = each.next();
        Expression inner = one instanceof Alias ? ((Alias) one).child() : null;
        if (!(inner instanceof AggregateExpression)) return null;
        AggregateExpression aggregate = (AggregateExpression) inner;
        AggregateFunction function = aggregate.aggregateFunction();
        if (aggregate.isDistinct() || aggregate.filter().isDefined() || !isCountable(function)) return null;
        found.functions.add(function);
        if (function instanceof Lines) found.all = ((Lines) function).all;
      }
      return found;
    }

    /** What explain() shows, as it does of Spark's operator. */
    public String toString() {
      return named.mkString("[", ", ", "]");
    }

    private static boolean isCountable(AggregateFunction function) {
      Expression of = (Expression) function.children().apply(0);
      if (function instanceof Count) return function.children().size() == 1 && isGenerated(of);
      if (function instanceof Sum) {
        return function.prettyName().equals("try_sum") && of.dataType() instanceof LongType && isGenerated(of);
      }
      return function instanceof Lines && (of instanceof CaseWhen || of instanceof If) && isGenerated(condition(of));
    }

    /** Return whether Spark generates code for an expression (CollapseCodegenStages.supportCodegen). */
    private static boolean isGenerated(Expression of) {
      if (of instanceof CodegenFallback && of.children().nonEmpty()) return false;
      for (Iterator each = of.children().iterator(); each.hasNext(); ) {
        if (!isGenerated((Expression) each.next())) return false;
      }
      return true;
    }
  }

  /** Return when a row has a text. */
  private static Expression condition(Expression texts) {
    return (Expression) texts.children().apply(0);
  }

  // -- what is counted

  private Tally tally() {
    if (tally == null) {
      Tally made = new Tally(metrics.functions.size(), metrics.all);
      made.register(sparkContext(), Option.empty(), false);
      tally = made;
    }
    return tally;
  }

  public Row collectedMetrics() {
    return isGenerated ? tally().row(metrics.functions, metricsSchema()) : super.collectedMetrics();
  }

  public RDD doExecute() {
    isGenerated = false;
    return super.doExecute();
  }

  // -- generated code

  public CodegenSupport parent() {
    return parent;
  }

  public void parent_$eq(CodegenSupport parent) {
    this.parent = parent;
  }

  public scala.collection.immutable.Seq inputRDDs() {
    return ((CodegenSupport) child()).inputRDDs().toList();
  }

  public String doProduce(CodegenContext ctx) {
    isGenerated = true;
    tally().reset();
    return ((CodegenSupport) child()).produce(ctx, this);
  }

  /** None: columns are decoded here where they are needed, and most of them for few rows. */
  public AttributeSet usedInputs() {
    return AttributeSet$.MODULE$.empty();
  }

  public String doConsume(CodegenContext ctx, scala.collection.immutable.Seq input, ExprCode row) {
    String counts = ctx.addReferenceObj("tally", tally(), "ytstream.Tally");
    StringBuilder code = new StringBuilder();
    for (int i = 0; i < metrics.functions.size(); i++) {
      AggregateFunction function = (AggregateFunction) metrics.functions.get(i);
      Expression of = (Expression) function.children().apply(0);
      boolean isText = function instanceof Lines;
      Expression judged = isText ? condition(of) : of;
      code.append(evaluateRequiredVariables(child().output(), input, judged.references()));
      ctx.INPUT_ROW_$eq(null);
      ctx.currentVars_$eq(input);
      ExprCode found = bound(judged, Lookup.list(child().output())).genCode(ctx);
      code.append(found.code()).append("\nif (!").append(found.isNull());
      if (isText) code.append(" && ").append(found.value());
      code.append(") {\n");
      if (isText) code.append(text(ctx, counts, i, of));
      else if (function instanceof Sum) code.append(counts + ".add(" + i + ", " + found.value() + ");");
      else code.append(counts + ".count(" + i + ");");
      code.append("\n}\n");
    }
    return code + ((CodegenSupport) this).consume(ctx, input, null);
  }

  /** Of Spark 3.5, whose Scala is 2.12. */
  public String doConsume(CodegenContext ctx, scala.collection.Seq input, ExprCode row) {
    return doConsume(ctx, (scala.collection.immutable.Seq) input.toList(), row);
  }

  /**
   * Put the columns that the text is made of into a row of objects: the expression itself would be far more code than that of
   * all rows, and so would one that copies them as Spark's projections do. The JVM compiles the loop over the rows with it.
   */
  private String text(CodegenContext ctx, String counts, int number, Expression texts) {
    ArrayList used = new ArrayList();
    for (Iterator each = child().output().iterator(); each.hasNext(); ) {
      Attribute column = (Attribute) each.next();
      if (texts.references().contains(column)) used.add(column);
    }
    String values = ctx.freshName("values");
    StringBuilder code = new StringBuilder("Object[] " + values + " = new Object[" + used.size() + "];\n");
    for (int i = 0; i < used.size(); i++) {
      ExprCode value = bound((Expression) used.get(i), Lookup.list(child().output())).genCode(ctx);
      DataType type = ((Attribute) used.get(i)).dataType();
      String boxed = CodeGenerator$.MODULE$.isPrimitiveType(type) ? CodeGenerator$.MODULE$.boxedType(type) + ".valueOf" : "";
      code.append(value.code() + "\nif (!" + value.isNull() + ") " + values + "[" + i + "] = " + boxed + "(" + value.value() + ");\n");
    }
    Lines.Texts made = new Lines.Texts(bound(texts, used), ((Lines) metrics.functions.get(number)).most);
    String term = ctx.addReferenceObj("texts", made, "ytstream.Lines$Texts");
    return code + term + ".add(" + counts + ", " + values + ");";
  }

  /** Return the expression on the columns by their places, as BindReferences does, whose arguments Java cannot name. */
  static Expression bound(Expression expression, ArrayList columns) {
    if (expression instanceof Attribute) {
      for (int i = 0; i < columns.size(); i++) {
        Attribute column = (Attribute) columns.get(i);
        if (column.exprId().equals(((Attribute) expression).exprId())) {
          return new BoundReference(i, column.dataType(), column.nullable());
        }
      }
      throw new IllegalStateException("the column " + expression + " is lost");
    }
    if (expression.children().isEmpty()) return expression;
    ArrayList children = new ArrayList();
    for (Iterator each = expression.children().iterator(); each.hasNext(); ) {
      children.add(bound((Expression) each.next(), columns));
    }
    return (Expression) expression.withNewChildren(Lookup.sequence(children));
  }

  // -- what Spark asks of an operator

  public AttributeSet references() {
    return AttributeSet$.MODULE$.apply((scala.collection.Iterable) metrics.named);
  }

  public CollectMetricsExec withNewChildInternal(SparkPlan child) {
    return new ObservedExec(name(), metrics, child);
  }

  public Object productElement(int n) {
    return n == 1 ? metrics : super.productElement(n);
  }
}
