"""/store, endpoint by endpoint: responses and refusals."""

import threading
import uuid

import httpx
import pytest
from table import refused, refuses_too_much, refuses_what_is_not_json

pytestmark = pytest.mark.beyond_peer("refuses differently")
ITEM = {"namespace", "key", "value", "created_at", "updated_at"}


@pytest.fixture
def place() -> str:
    return f"table-{uuid.uuid4()}"


def put(http, namespace, key, value=None, **more):
    answer = http.put("/store/items", json={"namespace": namespace, "key": key, "value": value or {}, **more})
    assert (answer.status_code, answer.content) == (204, b""), answer.text


def get(http, namespace, key, **more):
    answer = http.get("/store/items", params={"namespace": ".".join(namespace), "key": key, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def search(http, **body):
    answer = http.post("/store/items/search", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def namespaces(http, **body):
    answer = http.post("/store/namespaces", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["namespaces"]


# ---- PUT, GET, DELETE /store/items


def test_an_item_comes_back_as_it_was(http, place):
    content = '{"namespace":["%s"],"key":"k","value":{"a":[1.0,12345678901234567890,"\\u0000é"],"b":{}}}' % place
    assert http.put("/store/items", content=content).status_code == 204
    answer = http.get("/store/items", params={"namespace": place, "key": "k"})
    assert '"value":{"a":[1.0,12345678901234567890,"\\u0000é"],"b":{}}' in answer.text
    assert set(answer.json()) == ITEM


@pytest.mark.parametrize("key", ["a b", "ä/ö?&=#%+", "with.dots", "a,b", "🧶", '["x"]', "\n\t", "k" * 1024])
def test_keys_may_be_anything(http, place, key):
    put(http, [place], key, {"key": key})
    assert get(http, [place], key)["value"] == {"key": key}


@pytest.mark.parametrize("label", ["a b", "ä/ö?&=#%+", "a,b", "🧶", '["x"]', "*", "l" * 900])
def test_labels_may_be_anything_without_dots(http, place, label):
    put(http, [place, label], "k", {"n": 1})
    assert get(http, [place, label], "k")["namespace"] == [place, label]
    assert [item["namespace"] for item in search(http, namespace_prefix=[place, label])] == [[place, label]]


def test_a_label_for_each_parameter(http, place):
    put(http, [place, "a", "b"], "k", {"n": 1})
    answer = http.get("/store/items", params={"namespace": [place, "a", "b"], "key": "k"})
    assert answer.json()["value"] == {"n": 1}


def test_put_replaces_and_keeps_the_time_of_creation(http, place):
    put(http, [place], "k", {"n": 1, "gone": True})
    first = get(http, [place], "k")
    put(http, [place], "k", {"n": 2})
    second = get(http, [place], "k")
    assert second["value"] == {"n": 2} and second["created_at"] == first["created_at"]
    assert second["updated_at"] > first["updated_at"]


def test_a_missing_item_is_null(http, place):
    answer = http.get("/store/items", params={"namespace": place, "key": "k"})
    assert (answer.status_code, answer.text) == (200, "null")


def test_delete(http, place):
    for options in (
        {"json": {"namespace": [place, "a"], "key": "k"}},
        {"params": {"namespace": f"{place}.a", "key": "k"}},
    ):
        put(http, [place, "a"], "k")
        for _ in range(2):  # deleting it again succeeds too
            answer = http.request("DELETE", "/store/items", **options)
            assert (answer.status_code, answer.content) == (204, b"")
            assert get(http, [place, "a"], "k") is None


def test_optional_members(http, place):
    put(http, [place], "k", index=None, ttl=None, unknown=1)
    for index in (False, [], ["a", "b.c"]):
        put(http, [place], "k", index=index)
    put(http, [place], "k", ttl=0.5)
    put(http, [place], "k", ttl=1000000)


GOOD = {"namespace": ["a"], "key": "k", "value": {}}


@pytest.mark.parametrize(
    "change, named",
    [
        ({"namespace": None}, "namespace"),
        ({"namespace": "a"}, "namespace"),
        ({"namespace": [1]}, "namespace"),
        ({"namespace": [""]}, "namespace"),
        ({"namespace": ["a.b"]}, "namespace"),
        ({"namespace": ["a", "b\0"]}, "namespace"),
        ({"namespace": ["langgraph"]}, "reserved"),
        ({"namespace": ["a"] * 65}, "namespace"),
        ({"namespace": ["a" * 1025]}, "namespace"),
        ({"namespace": ["a" * 5000]}, "namespace"),
        ({"key": None}, "key"),
        ({"key": ""}, "key"),
        ({"key": 1}, "key"),
        ({"key": "a\0b"}, "key"),
        ({"key": "k" * 1025}, "key"),
        ({"value": None}, "value"),
        ({"value": []}, "value"),
        ({"value": "x"}, "value"),
        ({"ttl": 0}, "ttl"),
        ({"ttl": -1}, "ttl"),
        ({"ttl": "1"}, "ttl"),
        ({"ttl": 1e300}, "ttl"),
        ({"index": "a"}, "index"),
        ({"index": [1]}, "index"),
        ({"index": {}}, "index"),
    ],
)
def test_put_refuses(http, change, named):
    refused(http, "PUT", "/store/items", 422, named, json={**GOOD, **change})
    missing = {name: value for name, value in {**GOOD, **change}.items() if value is not None}
    if missing != {**GOOD, **change}:
        refused(http, "PUT", "/store/items", 422, named, json=missing)


def test_an_empty_namespace(http):
    refused(http, "PUT", "/store/items", 400, "namespace", json={**GOOD, "namespace": []})


@pytest.mark.parametrize(
    "query",
    ["", "key=k", "namespace=a", "namespace=&key=k", "namespace=a&key=", "namespace=a..b&key=k", "namespace=.a&key=k",
     "namespace=a&key=k&refresh_ttl=maybe", "namespace=a&key=%ff", "namespace=a&key=%zz", "namespace=a%00&key=k"],
)  # fmt: skip
def test_get_refuses(http, query):
    assert http.get(f"/store/items?{query}").status_code in (400, 422)


def test_delete_refuses(http):
    for body in (
        {"key": "k"},
        {"namespace": ["a"]},
        {"namespace": ["a.b"], "key": "k"},
        {"namespace": ["a"], "key": 1},
    ):
        refused(http, "DELETE", "/store/items", 422, json=body)
    refused(http, "DELETE", "/store/items", 422)


@pytest.mark.parametrize("method, path", [("PUT", "/store/items")])
def test_bodies_are_needed(http, method, path):
    refuses_what_is_not_json(http, method, path)


@pytest.mark.parametrize(
    "method, path", [("DELETE", "/store/items"), ("POST", "/store/items/search"), ("POST", "/store/namespaces")]
)
def test_bodies_must_be_objects(http, method, path):
    refuses_what_is_not_json(http, method, path, needs_body=False)


@pytest.mark.parametrize(
    "method, path",
    [
        ("PUT", "/store/items"),
        ("DELETE", "/store/items"),
        ("POST", "/store/items/search"),
        ("POST", "/store/namespaces"),
    ],
)
def test_bodies_may_be_too_large(http, method, path):
    refuses_too_much(http, method, path)


def test_other_methods(http):
    answer = http.patch("/store/items", json={})
    assert answer.status_code == 405 and set(answer.headers["allow"].split(", ")) >= {"GET", "PUT", "DELETE"}


def test_many_write_the_same_item(http, place):
    """A reader that extends the item's lifetime does not undo a write."""
    stop = threading.Event()

    def read():
        with httpx.Client(base_url=http.base_url, timeout=60) as reader:
            while not stop.is_set():
                assert get(reader, [place], "k", refresh_ttl=True) is not None

    put(http, [place], "k", {"n": 0}, ttl=60)
    readers = [threading.Thread(target=read) for _ in range(3)]
    for each in readers:
        each.start()
    try:
        for n in range(1, 300):
            put(http, [place], "k", {"n": n}, ttl=60)
            assert get(http, [place], "k")["value"] == {"n": n}
    finally:
        stop.set()
        for each in readers:
            each.join()


# ---- POST /store/items/search


def test_the_last_written_comes_first(http, place):
    for key in ("a", "c", "b"):
        put(http, [place, key], key)
    assert [item["key"] for item in search(http, namespace_prefix=[place])] == ["b", "c", "a"]
    put(http, [place, "a"], "a")
    assert [item["key"] for item in search(http, namespace_prefix=[place])] == ["a", "b", "c"]
    assert [item["key"] for item in search(http, namespace_prefix=[place], limit=1, offset=1)] == ["b"]
    assert search(http, namespace_prefix=[place], offset=3) == []
    assert all(set(item) == ITEM for item in search(http, namespace_prefix=[place]))


def test_everything_is_found_without_a_prefix(http, place):
    put(http, [place], "k", {"mine": place})
    for prefix in ({}, {"namespace_prefix": None}, {"namespace_prefix": []}):
        assert [item["key"] for item in search(http, filter={"mine": place}, **prefix)] == ["k"]
    assert http.post("/store/items/search").status_code == 200
    assert len(search(http)) <= 10


def test_a_query_has_no_score_without_an_index(http, place):
    put(http, [place], "k", {"text": "hello"})
    [item] = search(http, namespace_prefix=[place], query="something else")
    assert item["score"] is None and set(item) == ITEM | {"score"}
    [item] = search(http, namespace_prefix=[place], query=None)
    assert set(item) == ITEM


def test_filters(http, place):
    put(http, [place], "one", {"n": 1, "s": "b", "deep": {"x": 1, "y": 2}, "list": [1, 2]})
    put(http, [place], "two", {"n": 2.0, "s": "c", "none": None})

    def found(condition):
        return sorted(item["key"] for item in search(http, namespace_prefix=[place], filter=condition))

    for condition, wanted in [
        ({}, ["one", "two"]),
        ({"n": 1}, ["one"]),
        ({"n": 2}, ["two"]),
        ({"n": {"$gt": 1}}, ["two"]),
        ({"n": {"$gte": 1, "$lt": 2}}, ["one"]),
        ({"n": {"$ne": 1}}, ["two"]),
        ({"s": {"$lte": "b"}}, ["one"]),
        ({"s": {"$gt": 1}}, []),
        ({"deep": {"x": 1}}, ["one"]),
        ({"list": [1, 2]}, ["one"]),
        ({"list": [2, 1]}, []),
        ({"none": None}, ["one", "two"]),
        ({"nothing": 1}, []),
    ]:
        assert found(condition) == wanted, condition


@pytest.mark.parametrize(
    "body, named",
    [
        ({"namespace_prefix": "a"}, "namespace_prefix"),
        ({"namespace_prefix": [1]}, "namespace_prefix"),
        ({"namespace_prefix": ["a.b"]}, "namespace_prefix"),
        ({"namespace_prefix": [""]}, "namespace_prefix"),
        ({"filter": []}, "filter"),
        ({"filter": "x"}, "filter"),
        ({"filter": {"n": {"$near": 1}}}, "$near"),
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"limit": 1.5}, "limit"),
        ({"offset": -1}, "offset"),
        ({"offset": 99999999999}, "offset"),
        ({"query": 1}, "query"),
        ({"refresh_ttl": "yes"}, "refresh_ttl"),
    ],
)
def test_search_refuses(http, body, named):
    refused(http, "POST", "/store/items/search", 422, named, json=body)


# ---- /store/namespaces


@pytest.fixture
def tree(http, place):
    for path in (["a"], ["a", "x"], ["a", "y", "deep"], ["a-b"], ["b", "x"]):
        put(http, [place, *path], "k")
    return place


@pytest.mark.parametrize(
    "options, wanted",
    [
        ({}, ["a", "a.x", "a.y.deep", "a-b", "b.x"]),
        ({"prefix": ["a"]}, ["a", "a.x", "a.y.deep"]),
        ({"prefix": ["*", "x"]}, ["a.x", "b.x"]),
        ({"suffix": ["x"]}, ["a.x", "b.x"]),
        ({"suffix": ["*", "x"]}, ["a.x", "b.x"]),
        ({"suffix": ["y", "*"]}, ["a.y.deep"]),
        ({"prefix": ["a"], "suffix": ["deep"]}, ["a.y.deep"]),
        ({"max_depth": 2}, ["a", "a-b", "b"]),
        ({"max_depth": 3}, ["a", "a.x", "a.y", "a-b", "b.x"]),
        ({"limit": 2}, ["a", "a.x"]),
        ({"limit": 2, "offset": 3}, ["a-b", "b.x"]),
        ({"offset": 5}, []),
        ({"prefix": ["nothing"]}, []),
    ],
)
def test_namespaces(http, tree, options, wanted):
    def shown(found):
        return [".".join(each[1:]) for each in found]

    body = {**options, "prefix": [tree, *options.get("prefix", [])]}
    assert shown(namespaces(http, **body)) == wanted
    query = {name: ".".join(value) if isinstance(value, list) else value for name, value in body.items()}
    assert shown(http.get("/store/namespaces", params=query).json()["namespaces"]) == wanted


def test_all_members_are_optional(http, tree):
    assert http.post("/store/namespaces").status_code == http.get("/store/namespaces").status_code == 200
    nothing = {"prefix": None, "suffix": None, "max_depth": None, "limit": None, "offset": None}
    assert namespaces(http, **nothing) == namespaces(http)


def test_a_namespace_goes_with_its_last_item(http, place):
    put(http, [place, "a"], "k")
    http.request("DELETE", "/store/items", json={"namespace": [place, "a"], "key": "k"})
    assert namespaces(http, prefix=[place]) == []


@pytest.mark.parametrize(
    "body, named",
    [
        ({"prefix": "a"}, "prefix"),
        ({"prefix": ["a.b"]}, "prefix"),
        ({"suffix": [1]}, "suffix"),
        ({"max_depth": 0}, "max_depth"),
        ({"max_depth": "2"}, "max_depth"),
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"offset": -1}, "offset"),
    ],
)
def test_namespaces_refuse(http, body, named):
    refused(http, "POST", "/store/namespaces", 422, named, json=body)


@pytest.mark.parametrize("query", ["max_depth=0", "max_depth=x", "limit=0", "offset=-1", "prefix=a..b", "suffix=."])
def test_namespaces_of_a_query_refuse(http, query):
    refused(http, "GET", f"/store/namespaces?{query}", 422, query.partition("=")[0])
