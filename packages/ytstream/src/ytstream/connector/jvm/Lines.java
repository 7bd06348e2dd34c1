package ytstream;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.expressions.Aggregator;
import org.apache.spark.sql.functions;

/**
 * Gathers texts of some rows of a batch, a line for each, for Dataset.observe(): they come to the driver with the results
 * of the tasks. Where they are too long, none comes, so neither a task nor the driver can run out of memory.
 */
public final class Lines extends Aggregator {
  /** Lines that nobody has taken yet; Spark finishes those of a batch again for each report of it. */
  private static final Newest NEWEST = new Newest();
  /** In place of lines that were too long, and of one that was: no line is empty. */
  private static final String TOO_LONG = "\n";

  /** Bytes of a task, and of all. */
  private final int most;
  private final int all;

  private Lines(int most, int all) {
    this.most = most;
    this.all = all;
  }

  /** Return the lines of a column of texts, null where a row has none; each ends with a line break. */
  public static Column of(Column texts, int most, int all) {
    return functions.udaf(new Lines(most, all), Encoders.BINARY()).apply(new Column[] {texts.cast("binary")});
  }

  /**
   * A buffer is an array that is longer than its content: its first four bytes say how many bytes it has of it, -1 where
   * they were too many. Spark has no encoder of a StringBuilder that a plan can be run with twice (DecodeUsingSerializer).
   */
  public Object zero() {
    return new byte[4];
  }

  public Object reduce(Object lines, Object text) {
    if (text == null) return lines;
    byte[] line = (byte[]) text;
    boolean isTooLong = line.length > 0 && line[0] == '\n';
    return isTooLong ? tooLong() : added((byte[]) lines, line, 0, line.length, 1, most);
  }

  public Object merge(Object lines, Object others) {
    int size = size((byte[]) others);
    return size < 0 ? tooLong() : added((byte[]) lines, (byte[]) others, 4, size, 0, all);
  }

  /** Return the buffer with a part of other bytes behind it, and so many line breaks. */
  private static byte[] added(byte[] lines, byte[] bytes, int from, int count, int breaks, int most) {
    int before = size(lines);
    int size = before + count + breaks;
    if (before < 0 || size > most) return tooLong();
    if (4 + size > lines.length) lines = Arrays.copyOf(lines, 4 + Math.min(Math.max(2 * size, 1024), most));
    System.arraycopy(bytes, from, lines, 4 + before, count);
    if (breaks > 0) lines[4 + size - 1] = '\n';
    ByteBuffer.wrap(lines).putInt(0, size);
    return lines;
  }

  private static int size(byte[] lines) {
    return ByteBuffer.wrap(lines).getInt(0);
  }

  private static byte[] tooLong() {
    return ByteBuffer.allocate(4).putInt(0, -1).array();
  }

  /** Return a key of the lines, for take(): Spark puts what is observed into its logs, and keeps that of 100 batches. */
  public Object finish(Object lines) {
    int size = size((byte[]) lines);
    String text = size < 0 ? TOO_LONG : new String((byte[]) lines, 4, size, StandardCharsets.UTF_8);
    String key = UUID.nameUUIDFromBytes(text.getBytes(StandardCharsets.UTF_8)).toString();
    synchronized (NEWEST) {
      NEWEST.put(key, text);
    }
    return key;
  }

  /** Return the lines with that key; null where later ones have displaced them. */
  public static String take(String key) {
    synchronized (NEWEST) {
      return (String) NEWEST.remove(key);
    }
  }

  public org.apache.spark.sql.Encoder bufferEncoder() {
    return Encoders.BINARY();
  }

  public org.apache.spark.sql.Encoder outputEncoder() {
    return Encoders.STRING();
  }

  private static final class Newest extends LinkedHashMap {
    private static final int MOST = 4;

    protected boolean removeEldestEntry(Map.Entry eldest) {
      return size() > MOST;
    }
  }
}
