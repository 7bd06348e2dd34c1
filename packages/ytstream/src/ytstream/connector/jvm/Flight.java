package ytstream;

import java.util.ArrayDeque;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** Requests that are under way, so many that their rows stay below a number of bytes. */
final class Flight {
  private static final long MOST_BYTES = 32L << 20;
  private static final int MOST_REQUESTS = 8;
  private static final long TIMEOUT_SECONDS = 300;

  private final ArrayDeque sent = new ArrayDeque();
  private final ArrayDeque sizes = new ArrayDeque();
  private long bytes;

  /** Wait until a request of that size may be sent, too. */
  void room(int size) throws Exception {
    while (!sent.isEmpty() && (sent.size() >= MOST_REQUESTS || bytes + size > MOST_BYTES)) landed();
  }

  void add(CompletableFuture request, int size) {
    sent.add(request);
    sizes.add(Integer.valueOf(size));
    bytes += size;
  }

  /** Wait for all; raise the error of the first that has one. */
  void land() throws Exception {
    while (!sent.isEmpty()) landed();
  }

  private void landed() throws Exception {
    bytes -= ((Integer) sizes.poll()).intValue();
    result((CompletableFuture) sent.poll());
  }

  /** Wait for one request; raise its error without Java's wrapping. */
  static Object result(CompletableFuture request) throws Exception {
    try {
      return request.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    } catch (ExecutionException error) {
      if (error.getCause() instanceof Exception) throw (Exception) error.getCause();
      throw error;
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt(); // whoever waits next must stop as well
      throw stopped;
    }
  }
}
