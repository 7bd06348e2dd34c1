package ytstream;

import java.io.Serializable;
import org.apache.spark.util.LongAccumulator;

/** What all tasks of a micro-batch look up in: a table by its id, at one time of the cluster; and their counts. */
final class Moment implements Serializable {
  /** As the configuration names it. It may be a link. */
  final String path;
  final String table;
  final long timestamp;
  /** Rows with a key, keys that were asked for, rows whose key the table does not have, and nanoseconds of waiting. */
  final LongAccumulator rows;
  final LongAccumulator keys;
  final LongAccumulator missing;
  final LongAccumulator waited;

  Moment(String path, String table, long timestamp, org.apache.spark.SparkContext spark) {
    this.path = path;
    this.table = table;
    this.timestamp = timestamp;
    rows = spark.longAccumulator();
    keys = spark.longAccumulator();
    missing = spark.longAccumulator();
    waited = spark.longAccumulator();
  }
}
