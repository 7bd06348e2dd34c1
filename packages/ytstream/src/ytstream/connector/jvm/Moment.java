package ytstream;

import java.io.Serializable;
import org.apache.spark.util.LongAccumulator;

/** What all tasks of a micro-batch look up in: a table by its id, at one time of the cluster; and their counts. */
final class Moment implements Serializable {
  /** For messages: what it is, its name, and its path in the configuration, which may be a link. */
  final String title;
  final String table;
  final long timestamp;
  /** Names what is in a table that nobody writes to; null of one that is written. */
  final String version;
  /** Rows with a key, keys that were asked for, rows whose key the table does not have, nanoseconds of waiting, and rows that the cache had. */
  final LongAccumulator rows;
  final LongAccumulator keys;
  final LongAccumulator missing;
  final LongAccumulator waited;
  final LongAccumulator hits;

  Moment(String title, String table, long timestamp, String version, org.apache.spark.SparkContext spark) {
    this.title = title;
    this.table = table;
    this.timestamp = timestamp;
    this.version = version;
    rows = spark.longAccumulator();
    keys = spark.longAccumulator();
    missing = spark.longAccumulator();
    waited = spark.longAccumulator();
    hits = spark.longAccumulator();
  }
}
