package ytstream;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import tech.ytsaurus.client.ApiServiceClientImpl;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.client.rpc.RequestWithResponseBuilder;
import tech.ytsaurus.client.rpc.RpcClientRequestBuilder;
import tech.ytsaurus.client.rpc.RpcClientResponse;
import tech.ytsaurus.client.rpc.RpcOptions;
import tech.ytsaurus.core.common.YTsaurusError;

/**
 * A request that is under way. The client's own methods make an object of each value; this hands over the reply as it
 * came. The client does not offer that, so its two members are called by reflection.
 */
abstract class Call {
  private static final int ATTEMPTS = 6;
  private static final long TIMEOUT_SECONDS = 30;
  private static final long[] PAUSES = {1, 2, 5, 10, 20};
  private static final Field OPTIONS;
  private static final Method INVOKE;

  // Another client may lack them: then this class does not load, and the job runs on SPYT's.
  static {
    try {
      OPTIONS = ApiServiceClientImpl.class.getDeclaredField("rpcOptions");
      OPTIONS.setAccessible(true);
      INVOKE = ApiServiceClientImpl.class.getDeclaredMethod("invoke", new Class[] {RpcClientRequestBuilder.class});
      INVOKE.setAccessible(true);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException("the client of YTsaurus has other members", error);
    }
  }

  private final CompoundClient yt;
  /** What cannot be done when the last attempt fails. */
  private final String what;
  private CompletableFuture coming;

  Call(CompoundClient yt, String what) {
    this.yt = yt;
    this.what = what;
  }

  /** Whether the same request would fail again. */
  boolean isPermanent(YTsaurusError error) {
    return false;
  }

  /** Make the message. */
  abstract RequestWithResponseBuilder message(RpcOptions options);

  final void send() {
    try {
      coming = (CompletableFuture) INVOKE.invoke(yt, new Object[] {message((RpcOptions) OPTIONS.get(yt))});
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Wait for the reply; ask again a few times where it is an error, as SPYT does (Utils.runWithRetry). */
  final RpcClientResponse reply() {
    try {
      return landed();
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      throw new RuntimeException(stopped);
    }
  }

  private RpcClientResponse landed() throws InterruptedException {
    for (int attempt = 1; ; attempt++) {
      try {
        return (RpcClientResponse) coming.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
      } catch (InterruptedException stopped) {
        throw stopped;
      } catch (Exception error) {
        coming.cancel(true);
        if (attempt == ATTEMPTS || failsAgain(error)) throw new RuntimeException("cannot " + what, error);
      }
      Thread.sleep(PAUSES[attempt - 1] * 1000);
      send();
    }
  }

  private boolean failsAgain(Throwable error) {
    Throwable cause = error;
    while (cause.getCause() != null) cause = cause.getCause();
    return cause instanceof YTsaurusError && isPermanent((YTsaurusError) cause);
  }
}
