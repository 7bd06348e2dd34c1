package ytstream;

import java.util.ArrayList;
import tech.ytsaurus.client.ApiServiceTransaction;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.client.request.StartTransaction;

/**
 * Requests of one task in a tablet transaction of their own, for guarantees without the batch's transaction. The rows
 * are kept until it has committed: where it does not, all are sent again in another one, as SPYT does
 * (YtDynTableUtils.runWithRetry).
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

  void send(Rowset request) {
    requests.add(request);
    if (requests.size() > 1 && own == null) return; // an earlier one has failed
    try {
      if (own == null) start();
      sent(request);
    } catch (Exception error) {
      abort();
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
      } catch (InterruptedException stopped) {
        abort();
        throw stopped;
      } catch (Exception error) {
        abort();
        if (attempt == ATTEMPTS) throw error;
      }
    }
  }

  private void start() throws Exception {
    flight = new Flight();
    own = (ApiServiceTransaction) Flight.result(yt.startTransaction(StartTransaction.tablet()));
  }

  private void sent(Rowset request) throws Exception {
    flight.room(request.bytes.length);
    flight.add(own.modifyRows(request), request.bytes.length);
  }

  private void abort() {
    try {
      if (own != null) own.abort();
    } catch (IllegalStateException over) {
      // A transaction whose commit has failed is not one that can be aborted.
    }
    own = null;
  }
}
