package ytstream;

import java.util.ArrayList;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import tech.ytsaurus.client.ApiServiceTransaction;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.client.request.StartTransaction;

/**
 * Requests of one task in a tablet transaction of their own, for guarantees without the batch's transaction. The rows
 * are kept until it has committed: where it does not, all are sent again in another one, as SPYT does
 * (YtDynTableUtils.runWithRetry). The client pings a transaction until it is closed, for as long as the executor lives: so
 * a task closes its block however it ends.
 */
final class Block {
  private static final int ATTEMPTS = 3;

  private final CompoundClient yt;
  private final ArrayList requests = new ArrayList();
  private ApiServiceTransaction own;
  private Flight flight;

  Block(CompoundClient yt) {
    this.yt = yt;
  }

  /** Send a request; commit() repeats it if it fails. Raise only if the task was interrupted. */
  void send(Rowset request) throws InterruptedException {
    requests.add(request);
    if (requests.size() > 1 && own == null) return; // an earlier one has failed
    try {
      if (own == null) start();
      sent(request);
    } catch (InterruptedException stopped) {
      throw stopped;
    } catch (Exception error) {
      close();
    }
  }

  /** Commit what was sent; raise the error of the last attempt. */
  void commit() throws Exception {
    for (int attempt = 1; !requests.isEmpty(); attempt++) {
      try {
        if (own == null) {
          start();
          for (Object request : requests) sent((Rowset) request);
        }
        flight.land();
        Flight.result(own.commit());
        requests.clear();
        own = null;
      } catch (Exception error) {
        close();
        if (attempt == ATTEMPTS || error instanceof InterruptedException) throw error;
      }
    }
  }

  /** Abort what was not committed. */
  void close() {
    if (own != null) own.close();
    own = null;
  }

  private void start() throws Exception {
    flight = new Flight();
    CompletableFuture starting = yt.startTransaction(StartTransaction.tablet());
    try {
      own = (ApiServiceTransaction) Flight.result(starting);
    } catch (Exception error) {
      starting.thenAccept(new Unwanted()); // its reply may still come
      throw error;
    }
  }

  private void sent(Rowset request) throws Exception {
    flight.room(request.bytes.length);
    flight.add(own.modifyRows(request), request.bytes.length);
  }

  /** Aborts a transaction that has opened when nobody waited for it any more. */
  private static final class Unwanted implements Consumer {
    public void accept(Object opened) {
      ((ApiServiceTransaction) opened).close();
    }
  }
}
