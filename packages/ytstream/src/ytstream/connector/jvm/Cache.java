package ytstream;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Rows of tables that nobody writes to, by their keys, as they came over the wire: for all tasks of an executor. It is
 * exact, since a table is named by its id and its last commit. Keys that a table does not have are kept, too.
 */
final class Cache {
  /** Tasks rarely wait for each other. */
  private static final int STRIPES = 16;
  private static Cache shared;

  private final long bytes;
  private final CacheStripe[] stripes = new CacheStripe[STRIPES];
  /** A table and what is asked for -> its number, and where the columns are in its rows. */
  private final Map tables = new HashMap();

  private Cache(long bytes) {
    this.bytes = bytes;
    for (int i = 0; i < STRIPES; i++) stripes[i] = new CacheStripe(Math.max(1, bytes / STRIPES));
  }

  /** Return the executor's cache. One of another size is begun anew. */
  static synchronized Cache of(long bytes) {
    if (shared == null || shared.bytes != bytes) shared = new Cache(bytes);
    return shared;
  }

  /** Rows of one table with the same columns. */
  static final class Table {
    final int number;
    /** See Columns.ordinals(); null before the first reply. All replies to the same request have the same. */
    volatile int[] ordinals;

    Table(int number) {
      this.number = number;
    }
  }

  /** Return a table at one commit of it, with these columns of its rows. */
  synchronized Table table(String version, StructType columns) {
    StringBuilder name = new StringBuilder(version);
    StructField[] fields = columns.fields();
    for (int i = 0; i < fields.length; i++) name.append('\n').append(Columns.original(fields[i]));
    Table known = (Table) tables.get(name.toString());
    if (known == null) tables.put(name.toString(), known = new Table(tables.size()));
    return known;
  }

  /** Give the last row of a piece what is known of its key; return whether anything is. */
  boolean find(int table, int hash, byte[] keys, int begin, int end, Piece piece) {
    return stripe(hash).find(table, hash, keys, begin, end, piece);
  }

  /** Remember the row that begins and ends there; {@code first} is -1 for a key without one. */
  void keep(int table, int hash, byte[] keys, int begin, int end, byte[] rows, int first, int last) {
    stripe(hash).keep(table, hash, keys, begin, end, rows, first, last);
  }

  private CacheStripe stripe(int hash) {
    return stripes[hash >>> 28];
  }
}
