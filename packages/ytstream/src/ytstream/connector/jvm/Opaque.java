package ytstream;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.spark.SparkEnv;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnaryExpression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding$;
import org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions$;
import org.apache.spark.sql.catalyst.optimizer.SimplifyCasts$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/**
 * A long expression that makes a text of the columns of a struct, and that Spark does not see. Spark analyses, optimizes and
 * prints the expressions of a query again for each batch, and each task reads them again. This one is prepared once, travels
 * as bytes, and is read once for all tasks of a process that evaluate it one after the other.
 */
public final class Opaque extends UnaryExpression implements Serializable {
  private static final ClassTag ANY = ClassTag$.MODULE$.apply(Object.class);
  /** By key: what was read and is not being evaluated. Two tasks cannot share one: it may keep a part of its row. */
  private static final Idle IDLE = new Idle();

  private final Expression columns;
  private final byte[] bytes;
  private final String key;

  /** {@code rows} has the expression as its only column, on the columns of the struct in their order. */
  public Opaque(Expression columns, QueryExecution rows) {
    // What Spark cannot evaluate is replaced, and what is free is done. All rules would take seconds for a thousand columns.
    LogicalPlan replaced = ReplaceExpressions$.MODULE$.apply(rows.analyzed());
    Project plan = (Project) SimplifyCasts$.MODULE$.apply(ConstantFolding$.MODULE$.apply(replaced));
    Expression text = ((Alias) plan.projectList().head()).child();
    ByteBuffer made = serializer().serialize(ObservedExec.bound(text, Lookup.list(plan.child().output())), ANY);
    this.columns = columns;
    bytes = new byte[made.remaining()];
    made.get(bytes);
    key = UUID.nameUUIDFromBytes(bytes).toString();
  }

  private Opaque(Expression columns, byte[] bytes, String key) {
    this.columns = columns;
    this.bytes = bytes;
    this.key = key;
  }

  private static SerializerInstance serializer() {
    return SparkEnv.get().closureSerializer().newInstance();
  }

  /** Return the text of a struct. */
  public UTF8String of(InternalRow struct) {
    ConcurrentLinkedQueue idle = IDLE.of(key);
    Expression text = (Expression) idle.poll();
    if (text == null) {
      ClassLoader loader = Thread.currentThread().getContextClassLoader();
      text = (Expression) serializer().deserialize(ByteBuffer.wrap(bytes), loader, ANY);
    }
    UTF8String made = (UTF8String) text.eval(struct);
    idle.add(text); // unless it has failed
    return made;
  }

  public Object nullSafeEval(Object struct) {
    return of((InternalRow) struct);
  }

  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    final String made = code.value() + " = " + context.addReferenceObj("opaque", this, "ytstream.Opaque") + ".of(";
    final String isNull = code.isNull() + " = " + code.value() + " == null;";
    return nullSafeCodeGen(context, code, new AbstractFunction1() {
      public Object apply(Object struct) {
        return made + struct + ");\n" + isNull;
      }
    });
  }

  // -- what Spark asks of an expression

  public Expression child() {
    return columns;
  }

  public DataType dataType() {
    return DataTypes.StringType;
  }

  public boolean nullable() {
    return true;
  }

  public TreeNode withNewChildInternal(TreeNode child) {
    return new Opaque((Expression) child, bytes, key);
  }

  public Object productElement(int n) {
    return n == 0 ? (Object) columns : key;
  }

  public int productArity() {
    return 2;
  }

  public boolean canEqual(Object other) {
    return other instanceof Opaque;
  }

  public boolean equals(Object other) {
    return other instanceof Opaque && columns.equals(((Opaque) other).columns) && key.equals(((Opaque) other).key);
  }

  /** Those of the newest queries of a process. */
  private static final class Idle extends LinkedHashMap {
    private static final int MOST = 8;

    synchronized ConcurrentLinkedQueue of(String key) {
      ConcurrentLinkedQueue found = (ConcurrentLinkedQueue) get(key);
      if (found == null) put(key, found = new ConcurrentLinkedQueue());
      return found;
    }

    protected boolean removeEldestEntry(Map.Entry eldest) {
      return size() > MOST;
    }
  }
}
