/* Two pages and a worker in one partition, as a browser's storage process sees them. */

#include "navlocks.h"

#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                 \
      return 1;                                                               \
    }                                                                         \
  } while (0)

static navlocks_text text(const char *utf8) {
  navlocks_text made = {utf8, strlen(utf8), NAVLOCKS_UTF8};
  return made;
}

int main(void) {
  uint8_t key[16] = {7};
  uint64_t host, page, tab, window, worker, other, query, id;
  CHECK(navlocks_host_new(key, &host) == NAVLOCKS_STATUS_OK);
  CHECK(navlocks_host_new(NULL, &host) == NAVLOCKS_STATUS_INVALID);
  CHECK(navlocks_group_new(host, &page) == NAVLOCKS_STATUS_OK);
  CHECK(navlocks_group_new(host, &tab) == NAVLOCKS_STATUS_OK);
  navlocks_text origin = text("https://shop.example");
  CHECK(navlocks_client_open(host, page, origin, text("window"), &window) == NAVLOCKS_STATUS_OK);
  CHECK(navlocks_client_open(host, page, origin, text("worker"), &worker) == NAVLOCKS_STATUS_OK);
  CHECK(navlocks_client_open(host, tab, origin, text("tab"), &other) == NAVLOCKS_STATUS_OK);

  /* The copy of a name is the library's, whatever its encoding. */
  char buffer[] = "cart";
  navlocks_text cart = {buffer, 4, NAVLOCKS_UTF8}, tag = text("checkout");
  CHECK(navlocks_request(host, window, 1, &cart, 1, NAVLOCKS_EXCLUSIVE, NAVLOCKS_WAIT_QUEUE, &tag, &id) ==
        NAVLOCKS_STATUS_OK);
  memset(buffer, 'x', 4);
  const uint16_t wide[] = {'c', 'a', 'r', 't'};
  navlocks_text same = {wide, 4, NAVLOCKS_UTF16};
  CHECK(navlocks_request(host, worker, 1, &same, 1, NAVLOCKS_EXCLUSIVE, NAVLOCKS_WAIT_QUEUE, NULL, NULL) ==
        NAVLOCKS_STATUS_PENDING);
  CHECK(navlocks_request(host, other, 7, &same, 1, NAVLOCKS_SHARED, NAVLOCKS_WAIT_QUEUE, NULL, NULL) ==
        NAVLOCKS_STATUS_PENDING);
  CHECK(navlocks_request(host, other, 7, &same, 1, NAVLOCKS_SHARED, NAVLOCKS_WAIT_QUEUE, NULL, NULL) ==
        NAVLOCKS_STATUS_NUMBER_IN_USE);
  CHECK(navlocks_request(host, other, 8, &same, 1, NAVLOCKS_SHARED, NAVLOCKS_WAIT_IF_AVAILABLE, NULL, NULL) ==
        NAVLOCKS_STATUS_UNAVAILABLE);
  CHECK(navlocks_request(host, other, 9, NULL, 0, NAVLOCKS_SHARED, NAVLOCKS_WAIT_QUEUE, NULL, NULL) ==
        NAVLOCKS_STATUS_INVALID);
  navlocks_text bad = {"\xff", 1, NAVLOCKS_UTF8};
  CHECK(navlocks_request(host, other, 9, &bad, 1, NAVLOCKS_SHARED, NAVLOCKS_WAIT_QUEUE, NULL, NULL) ==
        NAVLOCKS_STATUS_INVALID_TEXT);

  size_t held, pending, length;
  CHECK(navlocks_query(host, other, &query, &held, &pending) == NAVLOCKS_STATUS_OK);
  CHECK(held == 1 && pending == 2);
  navlocks_lock lock;
  CHECK(navlocks_query_row(query, 0, &lock) == NAVLOCKS_STATUS_OK);
  CHECK(lock.client == window && lock.number == 1 && lock.id == id && lock.token == 1);
  CHECK(lock.limit == NAVLOCKS_EXCLUSIVE && lock.names == 1);
  char name[4], small[2];
  CHECK(navlocks_query_text(query, 0, NAVLOCKS_TEXT_NAME, 0, NAVLOCKS_UTF8, name, 4, &length) ==
        NAVLOCKS_STATUS_OK);
  CHECK(length == 4 && memcmp(name, "cart", 4) == 0);
  CHECK(navlocks_query_text(query, 0, NAVLOCKS_TEXT_TAG, 0, NAVLOCKS_UTF8, small, 2, &length) ==
        NAVLOCKS_STATUS_TOO_SMALL);
  CHECK(length == 8);
  CHECK(navlocks_query_row(query, 3, &lock) == NAVLOCKS_STATUS_NOTHING);
  CHECK(navlocks_query_end(query) == NAVLOCKS_STATUS_OK);
  CHECK(navlocks_query_row(query, 0, &lock) == NAVLOCKS_STATUS_UNKNOWN);

  /* The page is closed: its worker is granted nothing, the tab is. */
  navlocks_event event;
  CHECK(navlocks_poll_event(host, tab, &event) == NAVLOCKS_STATUS_OK);
  CHECK(event.kind == NAVLOCKS_EVENT_KIND_UNAVAILABLE && event.number == 8);
  CHECK(navlocks_group_end(host, page) == NAVLOCKS_STATUS_OK);
  CHECK(navlocks_group_end(host, page) == NAVLOCKS_STATUS_UNKNOWN);
  CHECK(navlocks_release(host, window, 1) == NAVLOCKS_STATUS_NOTHING);
  CHECK(navlocks_poll_event(host, tab, &event) == NAVLOCKS_STATUS_OK);
  CHECK(event.kind == NAVLOCKS_EVENT_KIND_GRANTED && event.client == other);
  CHECK(event.number == 7 && event.value == 2);
  CHECK(navlocks_poll_event(host, tab, &event) == NAVLOCKS_STATUS_NOTHING);
  CHECK(navlocks_cancel(host, other, 7) == NAVLOCKS_STATUS_OK);
  CHECK(navlocks_cancel(host, other, 7) == NAVLOCKS_STATUS_NOTHING);
  CHECK(strlen(navlocks_status_text(NAVLOCKS_STATUS_LIMIT)) > 0);
  CHECK(navlocks_host_end(host) == NAVLOCKS_STATUS_OK);
  CHECK(navlocks_host_end(host) == NAVLOCKS_STATUS_UNKNOWN);
  puts("ok");
  return 0;
}
