package ytstream;

import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;

/** How many rows of each partition the next batch may read, by consumer: the runtime says so between two batches. */
public final class Pace {
  private static final ConcurrentHashMap ROWS = new ConcurrentHashMap();

  private Pace() {}

  /** Let the next batches read up to so many rows; 0: as many as the source's option says. */
  public static void set(String consumer, long rows) {
    if (rows > 0) ROWS.put(consumer, Long.valueOf(rows));
    else ROWS.remove(consumer);
  }

  static ReadLimit of(String consumer, ReadLimit option) {
    Long rows = (Long) ROWS.get(consumer);
    return rows == null ? option : ReadLimit.maxRows(rows.longValue());
  }
}
