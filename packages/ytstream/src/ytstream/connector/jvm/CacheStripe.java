package ytstream;

/**
 * A part of the cache. It has two halves: when the younger one is full, the older one is forgotten. What is found in the
 * older one moves to the younger one. So what stays are the keys that were asked for last.
 */
final class CacheStripe {
  private CacheHalf young;
  private CacheHalf old;

  CacheStripe(long bytes) {
    int half = (int) Math.min(1 << 30, bytes / 2);
    young = new CacheHalf(half);
    old = new CacheHalf(half);
  }

  synchronized boolean find(int table, int hash, byte[] keys, int begin, int end, Piece piece) {
    int entry = young.find(table, hash, keys, begin, end);
    if (entry >= 0) {
      young.copy(entry, piece);
      return true;
    }
    entry = old.find(table, hash, keys, begin, end);
    if (entry < 0) return false;
    old.copy(entry, piece);
    if (young.isFull(old.size(entry))) turn();
    else young.take(old, entry);
    return true;
  }

  synchronized void keep(int table, int hash, byte[] keys, int begin, int end, byte[] rows, int first, int last) {
    int size = CacheHalf.size(end - begin, first < 0 ? 0 : last - first);
    if (young.isTooLarge(size) || young.find(table, hash, keys, begin, end) >= 0) return;
    if (young.isFull(size)) turn();
    young.add(table, hash, keys, begin, end, rows, first, last);
  }

  private void turn() {
    CacheHalf gone = old;
    old = young;
    young = gone;
    young.clear();
  }
}
