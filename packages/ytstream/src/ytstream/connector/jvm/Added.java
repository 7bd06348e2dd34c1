package ytstream;

import java.io.Serializable;
import java.util.ArrayList;

/** What a task adds to the sums of a table, whole numbers alone. */
final class Added implements Serializable {
  final String[] names;
  /** By sum: the least and the most that the task adds to a key that it does not name, as far from 0. */
  final long[] least;
  final long[] most;
  /** Named keys as they are on the wire; by sum what the task adds to each, modulo 64 bits, and how often that was left. */
  final ArrayList keys = new ArrayList();
  final ArrayList sums = new ArrayList();
  final ArrayList beyond = new ArrayList();

  Added(String[] names) {
    this.names = names;
    least = new long[names.length];
    most = new long[names.length];
  }

  void most(int sum, long added) {
    if (added > most[sum]) most[sum] = added;
    else if (added < least[sum]) least[sum] = added;
  }

  void name(byte[] key, long[] added, int[] wraps) {
    keys.add(key);
    sums.add(added);
    beyond.add(wraps);
  }
}
