/* navlocks: the Web Locks API for C. See README.md. Made by cbindgen; do not edit. */

#ifndef NAVLOCKS_H
#define NAVLOCKS_H

#include <stddef.h>
#include <stdint.h>

/*
 Texts are UTF-8, and lengths are in bytes.
 */
#define NAVLOCKS_UTF8 0

/*
 Texts are UTF-16, any code units, and lengths are in code units.
 */
#define NAVLOCKS_UTF16 1

/*
 The limit of a shared request, which has none.
 */
#define NAVLOCKS_SHARED 0

/*
 The limit of an exclusive request. A larger limit is a semaphore with as many holders.
 */
#define NAVLOCKS_EXCLUSIVE 1

/*
 The request waits in order.
 */
#define NAVLOCKS_WAIT_QUEUE 0

/*
 The request is over if it cannot be granted at once.
 */
#define NAVLOCKS_WAIT_IF_AVAILABLE 1

/*
 The request takes the lock from its holders.
 */
#define NAVLOCKS_WAIT_STEAL 2

/*
 The request takes the lock from its holders, and aborts all waiters.
 */
#define NAVLOCKS_WAIT_STEAL_ALL 3

/*
 The shared request stands before all waiters.
 */
#define NAVLOCKS_WAIT_OVERTAKE 4

/*
 A suspended client keeps its locks until another client needs one.
 */
#define NAVLOCKS_EVICT_ON_CONTENTION 0

/*
 A suspended client loses its locks at once.
 */
#define NAVLOCKS_RELEASE_AT_ONCE 1

/*
 Another request stole the lock: `thief` is its id.
 */
#define NAVLOCKS_CAUSE_STOLEN 0

/*
 The lock was force-released.
 */
#define NAVLOCKS_CAUSE_FORCE_RELEASED 1

/*
 The lock was held for as long as its request allowed.
 */
#define NAVLOCKS_CAUSE_HELD_TOO_LONG 2

/*
 The client was suspended, and another client needed the lock.
 */
#define NAVLOCKS_CAUSE_EVICTED 3

/*
 The client was suspended.
 */
#define NAVLOCKS_CAUSE_SUSPENDED 4

/*
 The client ended.
 */
#define NAVLOCKS_CAUSE_CLIENT_ENDED 5

/*
 The text of a row: one of its names.
 */
#define NAVLOCKS_TEXT_NAME 0

/*
 The text of a row: the name of its client.
 */
#define NAVLOCKS_TEXT_CLIENT 1

/*
 The text of a row: its tag.
 */
#define NAVLOCKS_TEXT_TAG 2

/*
 The outcome of a call.
 */
typedef enum navlocks_status {
  /*
   It is done. Of a request: it holds its lock.
   */
  NAVLOCKS_STATUS_OK = 0,
  /*
   The request waits; an event follows.
   */
  NAVLOCKS_STATUS_PENDING = 1,
  /*
   The lock is not available, and the request is over.
   */
  NAVLOCKS_STATUS_UNAVAILABLE = 2,
  /*
   There is nothing to return, or nothing was to be done.
   */
  NAVLOCKS_STATUS_NOTHING = 3,
  /*
   A handle was never given, or ended.
   */
  NAVLOCKS_STATUS_UNKNOWN = 4,
  /*
   A pointer is null, or a number has no meaning.
   */
  NAVLOCKS_STATUS_INVALID = 5,
  /*
   A text is not UTF-8.
   */
  NAVLOCKS_STATUS_INVALID_TEXT = 6,
  /*
   The client has a live request of this number.
   */
  NAVLOCKS_STATUS_NUMBER_IN_USE = 7,
  /*
   A limit is reached.
   */
  NAVLOCKS_STATUS_LIMIT = 8,
  /*
   The request is refused: its client is suspended, or it overtakes and is not shared.
   */
  NAVLOCKS_STATUS_REFUSED = 9,
  /*
   The buffer is too small; the needed length is returned.
   */
  NAVLOCKS_STATUS_TOO_SMALL = 10,
} navlocks_status;

/*
 The kind of an event.
 */
typedef enum navlocks_event_kind {
  /*
   The request holds its lock; `value` is the fencing token.
   */
  NAVLOCKS_EVENT_KIND_GRANTED = 1,
  /*
   The request wanted the lock only if available, and it is not.
   */
  NAVLOCKS_EVENT_KIND_UNAVAILABLE = 2,
  /*
   Another client aborted the pending request; `value` is a cause.
   */
  NAVLOCKS_EVENT_KIND_ABORTED = 5,
  /*
   The lock was taken away; `value` is a cause.
   */
  NAVLOCKS_EVENT_KIND_LOST = 6,
  /*
   A request waits for this lock, which its client watches.
   */
  NAVLOCKS_EVENT_KIND_CONTENDED = 8,
} navlocks_event_kind;

/*
 A text of the caller, copied by the call.
 */
typedef struct navlocks_text {
  /*
   May be null if the length is 0.
   */
  const void *data;
  /*
   In units of the encoding.
   */
  size_t length;
  /*
   NAVLOCKS_UTF8 or NAVLOCKS_UTF16.
   */
  uint32_t encoding;
} navlocks_text;

/*
 An event of a request.
 */
typedef struct navlocks_event {
  /*
   The kind.
   */
  enum navlocks_event_kind kind;
  /*
   The client of the request.
   */
  uint64_t client;
  /*
   The number that the client gave to the request.
   */
  uint64_t number;
  /*
   The token of a grant, or a cause.
   */
  uint64_t value;
  /*
   The id of the request that stole the lock, or 0.
   */
  uint64_t thief;
} navlocks_event;

/*
 A lock or a request of a query.
 */
typedef struct navlocks_lock {
  /*
   The client.
   */
  uint64_t client;
  /*
   The number that the client gave to the request.
   */
  uint64_t number;
  /*
   The id of the request in its partition.
   */
  uint64_t id;
  /*
   The fencing token; 0 while the request is pending.
   */
  uint64_t token;
  /*
   When it was requested, and once held when it was granted: milliseconds since 1970.
   */
  uint64_t since;
  /*
   The limit: NAVLOCKS_SHARED, NAVLOCKS_EXCLUSIVE or larger.
   */
  uint32_t limit;
  /*
   How many names it has.
   */
  uint32_t names;
} navlocks_lock;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Makes a host: lock spaces by partition. `key` is 16 bytes from a random source.
 */
enum navlocks_status navlocks_host_new(const uint8_t *key, uint64_t *host);

/*
 Ends a host with all its groups.
 */
enum navlocks_status navlocks_host_end(uint64_t host);

/*
 Makes the fencing tokens of later grants at least this, for a host that continues another.
 */
enum navlocks_status navlocks_advance_token(uint64_t host_, uint64_t at_least);

/*
 Adds a group of clients that end together, such as a page and its workers. Their events have one
 queue.
 */
enum navlocks_status navlocks_group_new(uint64_t host_, uint64_t *group);

/*
 Ends a group with all its clients, as one input.
 */
enum navlocks_status navlocks_group_end(uint64_t host_, uint64_t group_);

/*
 Adds a client of a group to a partition. `name` is its name in queries.
 */
enum navlocks_status navlocks_client_open(uint64_t host_,
                                          uint64_t group_,
                                          struct navlocks_text partition,
                                          struct navlocks_text name_,
                                          uint64_t *client);

/*
 Ends a client: its locks are released, its requests aborted.
 */
enum navlocks_status navlocks_client_close(uint64_t host_, uint64_t client_);

/*
 Requests a lock on some names, under a number of the client's choice. `tag` and `id` may be
 null. A grant and an unavailable lock are events as well.
 */
enum navlocks_status navlocks_request(uint64_t host_,
                                      uint64_t client_,
                                      uint64_t number,
                                      const struct navlocks_text *names,
                                      size_t count,
                                      uint32_t limit,
                                      uint32_t wait,
                                      const struct navlocks_text *tag,
                                      uint64_t *id);

/*
 Releases a lock. Returns NAVLOCKS_STATUS_NOTHING if the request holds none.
 */
enum navlocks_status navlocks_release(uint64_t host_, uint64_t client_, uint64_t number);

/*
 Aborts a pending request. Returns NAVLOCKS_STATUS_NOTHING if it is not pending.
 */
enum navlocks_status navlocks_abort(uint64_t host_, uint64_t client_, uint64_t number);

/*
 Ends a request, whether it is pending or holds its lock. Returns NAVLOCKS_STATUS_NOTHING if it
 was over.
 */
enum navlocks_status navlocks_cancel(uint64_t host_, uint64_t client_, uint64_t number);

/*
 Takes a lock away because its time is over. Returns NAVLOCKS_STATUS_NOTHING if the request holds
 none.
 */
enum navlocks_status navlocks_expire(uint64_t host_, uint64_t client_, uint64_t number);

/*
 Gives a held lock a larger limit, or none by NAVLOCKS_SHARED. Returns NAVLOCKS_STATUS_NOTHING if
 no lock is held, or if the limit would become smaller.
 */
enum navlocks_status navlocks_downgrade(uint64_t host_,
                                        uint64_t client_,
                                        uint64_t number,
                                        uint32_t limit);

/*
 Takes away all locks held on a name. `count` may be null.
 */
enum navlocks_status navlocks_force_release(uint64_t host_,
                                            uint64_t client_,
                                            struct navlocks_text name_,
                                            size_t *count);

/*
 Suspends a client under a policy. It gets its events when it is resumed.
 */
enum navlocks_status navlocks_suspend(uint64_t host_, uint64_t client_, uint32_t policy);

/*
 Resumes a suspended client.
 */
enum navlocks_status navlocks_resume(uint64_t host_, uint64_t client_);

/*
 Asks for one event when a request waits for this lock.
 */
enum navlocks_status navlocks_watch_contention(uint64_t host_, uint64_t client_, uint64_t number);

/*
 Takes the next event of a group. Returns NAVLOCKS_STATUS_NOTHING if there is none.
 */
enum navlocks_status navlocks_poll_event(uint64_t host_,
                                         uint64_t group_,
                                         struct navlocks_event *event);

/*
 Returns a sentence about a status, which lives as long as the process.
 */
const char *navlocks_status_text(enum navlocks_status status);

/*
 Asks for all locks and requests in the partition of a client, in grant and queue order. `held`
 and `pending` are how many rows there are; held ones come first. navlocks_query_end ends the
 query.
 */
enum navlocks_status navlocks_query(uint64_t host_,
                                    uint64_t client_,
                                    uint64_t *query,
                                    size_t *held,
                                    size_t *pending);

/*
 Ends a query.
 */
enum navlocks_status navlocks_query_end(uint64_t query);

/*
 Reads a row of a query. Returns NAVLOCKS_STATUS_NOTHING if there is no such row.
 */
enum navlocks_status navlocks_query_row(uint64_t query, size_t row, struct navlocks_lock *lock);

/*
 Copies a text of a row into a buffer of `capacity` units of the encoding, without a NUL.
 `length` is that of the whole text. Unpaired surrogates become U+FFFD in UTF-8.
 */
enum navlocks_status navlocks_query_text(uint64_t query,
                                         size_t row,
                                         uint32_t kind,
                                         size_t index,
                                         uint32_t encoding,
                                         void *buffer,
                                         size_t capacity,
                                         size_t *length);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NAVLOCKS_H */
