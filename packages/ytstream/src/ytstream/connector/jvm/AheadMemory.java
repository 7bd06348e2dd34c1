package ytstream;

import java.util.concurrent.ConcurrentHashMap;

/** Memory for rows that tasks ask for before they need them: what all tasks of an executor have together. */
public final class AheadMemory {
  private static final long BYTES = 64L << 20;
  /** Less is not worth a request, unless a request needs less. */
  private static final long LEAST = 1L << 20;
  /** Of a queue that no reply is known of. */
  private static final Long ROW_BYTES = Long.valueOf(1024);

  private static final ConcurrentHashMap ROW_BYTES_OF = new ConcurrentHashMap();
  private static long reserved;

  private AheadMemory() {}

  /** Reserve up to {@code wanted} bytes for a reply; return how many: 0 if too few are left. */
  public static synchronized long reserve(long wanted) {
    long found = Math.min(wanted, BYTES - reserved);
    if (found < Math.min(wanted, LEAST)) return 0;
    reserved += found;
    return found;
  }

  public static synchronized void free(long bytes) {
    reserved -= bytes;
  }

  /** Return how many bytes are reserved. */
  public static synchronized long reserved() {
    return reserved;
  }

  /** How long a row of a queue was on the wire in the last reply, on average. */
  static long rowBytes(String queue) {
    return ((Long) ROW_BYTES_OF.getOrDefault(queue, ROW_BYTES)).longValue();
  }

  static void learn(String queue, long bytes, int rows) {
    ROW_BYTES_OF.put(queue, Long.valueOf(bytes / rows));
  }
}
