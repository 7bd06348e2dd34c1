package ytstream;

import scala.Option;
import tech.ytsaurus.client.ApiServiceTransaction;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.spyt.wrapper.YtWrapper;

/**
 * The transaction that SPYT has opened for a batch, and will commit. To attach to it is a request, so all tasks of a process
 * share one, and where the driver is the executor, the driver shares it too. Many threads may write with it: it keeps its
 * unanswered requests in a ConcurrentLinkedQueue (ApiServiceTransaction).
 */
public final class Attached {
  /** The newest one: a process has one batch at a time. */
  private static Attached newest;

  private final String id;
  private ApiServiceTransaction transaction;

  private Attached(String id) {
    this.id = id;
  }

  /** Attach to a transaction, unless this process has done so. {@code yt} is a client of the proxy that it lives on. */
  public static ApiServiceTransaction to(String id, CompoundClient yt) {
    return named(id).attached(yt);
  }

  private static synchronized Attached named(String id) {
    if (newest == null || !newest.id.equals(id)) newest = new Attached(id);
    return newest;
  }

  /** Its own lock: a task of a former batch may wait for a reply that does not come. */
  private synchronized ApiServiceTransaction attached(CompoundClient yt) {
    if (transaction == null) transaction = YtWrapper.attachTransaction(id, false, Option.empty(), yt); // without pings
    return transaction;
  }
}
