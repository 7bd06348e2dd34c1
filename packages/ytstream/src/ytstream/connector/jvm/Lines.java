package ytstream;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.ImperativeAggregate;
import org.apache.spark.sql.catalyst.expressions.aggregate.TypedImperativeAggregate;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Gathers texts of some rows of a batch, a line for each, for Dataset.observe(): they come to the driver with the results
 * of the tasks. Where they are too long, none comes, so neither a task nor the driver can run out of memory.
 *
 * An aggregate of Spark's own kind, as collect_list() is. A user's aggregate (Aggregator) resolves its encoders again in
 * each task (ScalaAggregator.inputDeserializer), which takes longer than the rows of a small batch.
 */
public final class Lines extends TypedImperativeAggregate implements Serializable {
  /** Lines that nobody has taken yet; Spark finishes those of a batch again for each report of it. */
  private static final Newest NEWEST = new Newest();
  /** In place of lines that were too long, and of one that was: no line is empty. */
  private static final byte TOO_LONG = '\n';

  /** Texts, null where a row has none. */
  private final Expression texts;
  /** Bytes of a task, and of all. */
  final int most;
  final int all;
  /** Where Spark keeps the buffer. */
  private final int mutable;
  private final int input;
  /** Whether it has come from another process, as those of tasks have, or as if from one. */
  private transient boolean isCopy;

  public Lines(Expression texts, int most, int all, int mutable, int input) {
    this.texts = texts;
    this.most = most;
    this.all = all;
    this.mutable = mutable;
    this.input = input;
  }

  public Object createAggregationBuffer() {
    return new Buffer();
  }

  public Object update(Object lines, InternalRow row) {
    UTF8String text = (UTF8String) texts.eval(row);
    if (text != null) ((Buffer) lines).line(text.getBytes(), most);
    return lines;
  }

  public Object merge(Object lines, Object others) {
    ((Buffer) lines).add(((Buffer) others).toByteArray(), 0, all);
    return lines;
  }

  public Object eval(Object lines) {
    return UTF8String.fromString(key(((Buffer) lines).toByteArray()));
  }

  /** Return a key of the lines, for take(): Spark puts what is observed into its logs, and keeps that of 100 batches. */
  static String key(byte[] text) {
    String key = UUID.nameUUIDFromBytes(text).toString();
    synchronized (NEWEST) {
      NEWEST.put(key, new String(text, StandardCharsets.UTF_8));
    }
    return key;
  }

  /** Return the lines with that key; null where later ones have displaced them. */
  public static String take(String key) {
    synchronized (NEWEST) {
      return (String) NEWEST.remove(key);
    }
  }

  public byte[] serialize(Object lines) {
    return ((Buffer) lines).toByteArray();
  }

  public Object deserialize(byte[] lines) {
    Buffer found = new Buffer();
    found.add(lines, 0, Integer.MAX_VALUE);
    return found;
  }

  // -- on the way to a task and back

  // Not private, as Java would have it: Janino gives private methods another name.
  protected Object readResolve() {
    isCopy = true;
    return this;
  }

  /**
   * A task sends its lines back with the aggregate (AggregatingAccumulator). The texts stay there: they are many
   * expressions, and one that has been evaluated may hold what cannot travel (UInt64CastToString under Cast).
   */
  protected Object writeReplace() {
    return isCopy ? new Lines(new Literal(null, DataTypes.StringType), most, all, mutable, input) : this;
  }

  // -- what Spark asks of an expression

  public DataType dataType() {
    return DataTypes.StringType;
  }

  public boolean nullable() {
    return false;
  }

  public scala.collection.immutable.Seq children() {
    return (scala.collection.immutable.Seq) scala.collection.immutable.Nil$.MODULE$.$colon$colon(texts);
  }

  /** Of Spark 4, whose Scala is 2.13. */
  public TreeNode withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new Lines((Expression) children.apply(0), most, all, mutable, input);
  }

  /** Of Spark 3.5, whose Scala is 2.12. */
  public TreeNode withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return new Lines((Expression) children.apply(0), most, all, mutable, input);
  }

  public int mutableAggBufferOffset() {
    return mutable;
  }

  public int inputAggBufferOffset() {
    return input;
  }

  public ImperativeAggregate withNewMutableAggBufferOffset(int offset) {
    return new Lines(texts, most, all, offset, input);
  }

  public ImperativeAggregate withNewInputAggBufferOffset(int offset) {
    return new Lines(texts, most, all, mutable, offset);
  }

  /** The arguments of the constructor: Spark copies an expression with them (TreeNode.makeCopy). */
  public Object productElement(int n) {
    Object[] arguments = new Object[] {
      texts, Integer.valueOf(most), Integer.valueOf(all), Integer.valueOf(mutable), Integer.valueOf(input)
    };
    return arguments[n];
  }

  public int productArity() {
    return 5;
  }

  public boolean canEqual(Object other) {
    return other instanceof Lines;
  }

  public boolean equals(Object other) {
    if (!(other instanceof Lines)) return false;
    for (int n = 0; n < productArity(); n++) if (!productElement(n).equals(((Lines) other).productElement(n))) return false;
    return true;
  }

  /** Lines, or TOO_LONG alone. One that begins with = says how many others a task has sent to the cluster (RejectedRows). */
  static final class Buffer implements Serializable {
    private byte[] bytes = new byte[0];
    private int size;
    private int sent;

    /** Take a line of a task, unless those that it keeps are longer than so many bytes with it. */
    void line(byte[] text, int most) {
      if (text.length < most && text[0] != TOO_LONG && RejectedRows.take(text)) sent++;
      else add(text, 1, most);
    }

    /** Add bytes, and so many line breaks, unless there are more than {@code most} then. */
    void add(byte[] more, int breaks, int most) {
      if (size == 1 || more.length == 0) return;
      boolean isTooLong = more[0] == TOO_LONG || (long) size + more.length + breaks > most;
      if (isTooLong) clear();
      int length = isTooLong ? 1 : more.length + breaks;
      if (size + length > bytes.length) bytes = Arrays.copyOf(bytes, Math.max(size + length, Math.min(2 * size, most)));
      if (!isTooLong) System.arraycopy(more, 0, bytes, size, more.length);
      if (isTooLong || breaks > 0) bytes[size + length - 1] = '\n';
      size += length;
    }

    void clear() {
      bytes = new byte[0];
      size = 0;
      sent = 0;
    }

    boolean isEmpty() {
      return size == 0 && sent == 0;
    }

    byte[] toByteArray() {
      if (sent > 0) add(("=" + sent).getBytes(StandardCharsets.UTF_8), 1, Integer.MAX_VALUE);
      sent = 0;
      return Arrays.copyOf(bytes, size);
    }
  }

  /** Makes the lines of a task in generated code, one after the other: see ObservedExec. */
  public static final class Texts implements Serializable {
    /** On the columns of the rows that come. */
    private final Expression texts;
    private final int most;

    Texts(Expression texts, int most) {
      this.texts = texts;
      this.most = most;
    }

    public void add(Tally to, Object[] row) {
      UTF8String text = (UTF8String) texts.eval(new GenericInternalRow(row));
      if (text != null) to.line(text.getBytes(), most);
    }
  }

  private static final class Newest extends LinkedHashMap {
    private static final int MOST = 4;

    protected boolean removeEldestEntry(Map.Entry eldest) {
      return size() > MOST;
    }
  }
}
