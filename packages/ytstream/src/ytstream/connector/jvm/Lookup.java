package ytstream;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;
import tech.ytsaurus.core.tables.TableSchema;
import tech.ytsaurus.spyt.serializers.SchemaConverter$;
import tech.ytsaurus.ysontree.YTreeNode;

/** Adds columns of a sorted dynamic table to rows, by its key: what Python calls. */
public final class Lookup {
  private Lookup() {}

  /** Let a session plan lookups. A query of a stream has a copy of its session, so before it starts. */
  public static synchronized void install(ExperimentalMethods session) {
    for (Iterator each = session.extraStrategies().iterator(); each.hasNext(); ) {
      if (each.next() instanceof LookupStrategy) return;
    }
    session.extraStrategies_$eq(sequence(with(session.extraStrategies(), new LookupStrategy())));
    session.extraOptimizations_$eq(sequence(with(session.extraOptimizations(), new LookupRules())));
  }

  /**
   * Return a plan with the columns of {@code added}, their names behind {@code prefix}, and one that says whether the row
   * was there, with the bare prefix as its name. {@code on} are the row's columns in the order of the key.
   * {@code before} has the table's id and columns when the query starts: a batch takes no other columns.
   */
  public static LogicalPlan node(LogicalPlan child, List on, String name, String path, long timestamp, TableSchema keys,
      TableSchema added, String prefix, long cacheBytes, YTreeNode before) {
    StructType types = added.getColumnsCount() == 0 ? new StructType()
        : SchemaConverter$.MODULE$.sparkSchema(added.toYTree(), Option.empty(), true);
    return made(child, on, LookupSpec.of(name, path, timestamp, keys, types, prefix, cacheBytes, false, before));
  }

  /**
   * Return a plan with the columns that an output of the job has now. They come in the types of {@code like}, which those of
   * the rows that are written are, and may be compared with them.
   */
  public static LogicalPlan stored(LogicalPlan child, List on, String name, String path, TableSchema keys, StructType like,
      String prefix) {
    StructField[] fields = new StructField[like.fields().length];
    for (int i = 0; i < fields.length; i++) { // without metadata, which may name a column of the queue
      fields[i] = new StructField(like.fields()[i].name(), like.fields()[i].dataType(), true, Metadata.empty());
    }
    return made(child, on, LookupSpec.of(name, path, 0, keys, new StructType(fields), prefix, 0, true, null));
  }

  /** Return a plan with one row of each key {@code on}: the one with the greatest value in the column {@code rank}. */
  public static LogicalPlan newest(LogicalPlan child, List on, String rank) {
    return new NewestNode(attributes(child, on), attribute(child, rank), child);
  }

  private static LogicalPlan made(LogicalPlan child, List on, LookupSpec spec) {
    return new LookupNode(attributes(child, on), spec, child);
  }

  private static scala.collection.immutable.List attributes(LogicalPlan plan, List names) {
    ArrayList found = new ArrayList();
    for (Object name : names) found.add(attribute(plan, (String) name));
    return sequence(found);
  }

  private static Attribute attribute(LogicalPlan plan, String name) {
    for (Iterator each = plan.output().iterator(); each.hasNext(); ) {
      Attribute found = (Attribute) each.next();
      if (found.name().equals(name)) return found;
    }
    throw new IllegalArgumentException("no column " + name + " among " + plan.output());
  }

  private static List with(scala.collection.Seq known, Object more) {
    ArrayList all = list(known);
    all.add(more);
    return all;
  }

  static ArrayList list(scala.collection.Seq items) {
    ArrayList all = new ArrayList();
    for (Iterator each = items.iterator(); each.hasNext(); ) all.add(each.next());
    return all;
  }

  /** A Scala list, which is a Seq of both Scalas. */
  static scala.collection.immutable.List sequence(List items) {
    scala.collection.immutable.List made = Nil$.MODULE$;
    for (int i = items.size() - 1; i >= 0; i--) made = made.$colon$colon(items.get(i));
    return made;
  }

  /** The columns of a plan and those that come. */
  static scala.collection.immutable.Seq output(scala.collection.Seq before, LookupSpec spec) {
    ArrayList all = list(before);
    all.addAll(Arrays.asList(spec.attributes));
    return sequence(all);
  }
}
