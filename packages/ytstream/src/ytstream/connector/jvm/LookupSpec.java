package ytstream;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.Serializable;
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.types.BooleanType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Nil$;
import tech.ytsaurus.core.tables.TableSchema;
import tech.ytsaurus.ysontree.YTreeBinarySerializer;
import tech.ytsaurus.ysontree.YTreeNode;

/** What is looked up: a table, its key, and the columns that come. No Expression: Spark must not transform what is in it. */
public final class LookupSpec implements Serializable {
  /** In tables.py, and in the configuration. */
  final String name;
  final String path;
  /** The cluster's time to look up at; 0: that of the micro-batch. */
  final long timestamp;
  /** The schema of the key columns, as YSON: TableSchema does not travel. */
  private final byte[] keys;
  /** The columns that come, with the table's names in their metadata. */
  final StructType added;
  /** Of each executor, for tables that nobody writes to; 0: none. */
  final long cacheBytes;
  /** Whether a column follows that says if the row was there. */
  final boolean hasFound;
  /** Whether a null is a key like any other: of a table of the job's own. A reference is not asked for it. */
  final boolean hasNullKeys;
  /** The `id` of the table when the query started, and of its `schema` the columns that matter; null: not known. */
  final transient YTreeNode before;
  /** All that comes, as the plan knows it. */
  final transient Attribute[] attributes;

  private LookupSpec(String name, String path, long timestamp, byte[] keys, StructType added, long cacheBytes, boolean hasFound,
      boolean hasNullKeys, YTreeNode before, Attribute[] attributes) {
    this.name = name;
    this.path = path;
    this.timestamp = timestamp;
    this.keys = keys;
    this.added = added;
    this.cacheBytes = cacheBytes;
    this.hasFound = hasFound;
    this.hasNullKeys = hasNullKeys;
    this.before = before;
    this.attributes = attributes;
  }

  /** {@code prefix} is put in front of the names in the plan. */
  static LookupSpec of(String name, String path, long timestamp, TableSchema keys, StructType added, String prefix,
      long cacheBytes, boolean hasNullKeys, YTreeNode before) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    YTreeBinarySerializer.serialize(keys.toYTree(), out);
    StructField[] fields = added.fields();
    Attribute[] attributes = new Attribute[fields.length + 1];
    for (int i = 0; i < fields.length; i++) {
      attributes[i] = new AttributeReference(prefix + fields[i].name(), fields[i].dataType(), true, fields[i].metadata(),
          NamedExpression$.MODULE$.newExprId(), (scala.collection.immutable.Seq) Nil$.MODULE$);
    }
    attributes[fields.length] = new AttributeReference(prefix, BooleanType$.MODULE$, false,
        org.apache.spark.sql.types.Metadata.empty(), NamedExpression$.MODULE$.newExprId(),
        (scala.collection.immutable.Seq) Nil$.MODULE$);
    return new LookupSpec(name, path, timestamp, out.toByteArray(), added, cacheBytes, true, hasNullKeys, before, attributes);
  }

  /** Return the same without what nobody reads; this object if all is read, null if nothing is. */
  LookupSpec narrowed(AttributeSet read) {
    ArrayList fields = new ArrayList();
    ArrayList kept = new ArrayList();
    for (int i = 0; i < attributes.length; i++) {
      if (!read.contains(attributes[i])) continue;
      kept.add(attributes[i]);
      if (i < added.fields().length) fields.add(added.fields()[i]);
    }
    if (kept.size() == attributes.length) return this;
    if (kept.isEmpty()) return null;
    StructType less = new StructType((StructField[]) fields.toArray(new StructField[0]));
    Attribute[] left = (Attribute[]) kept.toArray(new Attribute[0]);
    return new LookupSpec(name, path, timestamp, keys, less, cacheBytes, kept.size() > fields.size(), hasNullKeys, before, left);
  }

  /** Name the table for a person. */
  String title() {
    return hasNullKeys ? "the output " + path : "the reference " + name + " (" + path + ")";
  }

  public String toString() {
    return name + " " + path + " " + added.simpleString();
  }

  TableSchema keys() {
    return TableSchema.fromYTree(YTreeBinarySerializer.deserialize(new ByteArrayInputStream(keys)));
  }
}
