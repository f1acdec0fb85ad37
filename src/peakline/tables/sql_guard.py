"""What a query may not do: write, call functions that are not its business, read other tables.

DuckDB's own parser says which functions and tables a statement names. It does not take PIVOT apart:
there every word of the text counts.

A remote caller may call what is in `ALLOWED` and nothing else: what a later DuckDB adds is refused
until somebody has read what it does (a test compares these lists with the installed DuckDB). How
much time and memory a function takes does not matter: the process that runs such a query has
limits. Local callers may call everything but what is in `REFUSED`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peakline.errors import CheckFailed
from peakline.tables.sql_views import missing_table

if TYPE_CHECKING:
    import duckdb


_LOCALES = """
    aa af am ar ar_sa as az bal be bg blo bn bo br bs ca ceb chr cs cu cy da de de_at dsb dz ee el
    en en_us eo es et fa fa_af ff fi fil fo fr fr_ca fy ga gl gu ha haw he he_il hi hr hsb hu hy id
    id_id ig is it ja ka kk kl km kn ko kok ku ky lb lij lkt ln lo lt lv mk ml mn mr ms mt my nb
    nb_no ne nl nn no noaccent nso om or pa pa_in pl ps pt ro ru sa se sgs si sk sl smn sq sr sr_ba
    sr_me sr_rs ssy st sv sw ta te th tk tn to tr ug uk ur uz vi vo wae wo xh yi yo zh zh_cn zh_hk
    zh_mo zh_sg zh_tw zu
""".split()

_OPERATORS = """
    != !__postfix !~~ !~~* % & && * ** + - ->> / // < <-> << <= <=> <@ = > >= >> @ @> ^ ^@ | || ~ ~~
    ~~* ~~~
""".split()

_NAMES = """
    __between __cast abs acos acosh add age aggregate ago alias any_value apply
    approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null
    arg_max_nulls_last arg_min arg_min_null arg_min_nulls_last argmax argmin array_agg array_aggr
    array_aggregate array_append array_apply array_cat array_concat array_contains
    array_cosine_distance array_cosine_similarity array_cross_product array_distance array_distinct
    array_dot_product array_extract array_filter array_grade_up array_has array_has_all
    array_has_any array_indexof array_inner_product array_intersect array_length
    array_negative_dot_product array_negative_inner_product array_pop_back array_pop_front
    array_position array_prepend array_push_back array_push_front array_reduce array_resize
    array_reverse array_reverse_sort array_select array_slice array_sort array_to_json
    array_to_string array_to_string_comma_default array_transform array_unique array_value
    array_where array_zip ascii asin asinh assert_true atan atan2 atanh avg bar base64 bin binom
    bit_and bit_count bit_length bit_or bit_position bit_xor bitstring bitstring_agg
    bitstring_byte_comparable bool_and bool_or can_cast_implicitly cardinality cast_to_type cbrt
    ceil ceiling century char_length character_length chr col_description concat concat_ws
    constant_or_null contains corr cos cosh cot count count_if count_star countif covar_pop
    covar_samp create_sort_key cume_dist current_catalog current_database current_date
    current_localtime current_localtimestamp current_query current_role current_schema
    current_schemas current_user damerau_levenshtein date_add date_diff date_part date_sub
    date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear
    days_in_month decade decimal_average decimal_division decode degrees dense_rank divide editdist3
    element_at encode ends_with entropy enum_code enum_first enum_last enum_range
    enum_range_boundary epoch epoch_ms epoch_ns epoch_us equi_width_bins era error even exp
    factorial favg fdiv fill filter first first_value flatten floor fmod format format_bytes
    format_pg_type format_type formatreadabledecimalsize formatreadablesize from_base64 from_binary
    from_hex from_json from_json_strict fsum gamma gcd gen_random_uuid generate_series
    generate_subscripts geomean geometric_mean get_bit get_current_time get_current_timestamp
    get_type grade_up greatest greatest_common_divisor group_concat hamming hash hex histogram
    histogram_exact histogram_values hive_partition_component hour icu_sort_key if ilike_escape
    in_search_path instr invoke is_histogram_other_bin isfinite isinf isnan isodow isoyear jaccard
    jaro_similarity jaro_winkler_similarity json json_array json_array_length json_contains
    json_copy_strftime_if_date json_copy_strftime_if_timestamp json_deep_merge json_deserialize_sql
    json_each json_exists json_extract json_extract_path json_extract_path_text json_extract_string
    json_group_array json_group_object json_group_structure json_insert json_keys json_merge_patch
    json_merge_patch_diff json_normalize json_object json_pretty json_quote json_remove json_replace
    json_serialize_sql json_set json_strip_nulls json_structure json_transform json_transform_strict
    json_tree json_type json_valid json_value julian kahan_sum kurtosis kurtosis_pop lag last
    last_day last_value lcase lcm lead least least_common_multiple left left_grapheme len length
    length_grapheme levenshtein lgamma like_escape list list_aggr list_aggregate list_any_value
    list_append list_apply list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor
    list_bool_and list_bool_or list_cat list_concat list_contains list_cosine_distance
    list_cosine_similarity list_count list_distance list_distinct list_dot_product list_element
    list_entropy list_extract list_filter list_first list_grade_up list_has list_has_all
    list_has_any list_histogram list_indexof list_inner_product list_intersect list_kurtosis
    list_kurtosis_pop list_last list_mad list_max list_median list_min list_mode
    list_negative_dot_product list_negative_inner_product list_pack list_position list_prepend
    list_product list_reduce list_resize list_reverse list_reverse_sort list_select list_sem
    list_skewness list_slice list_sort list_stddev_pop list_stddev_samp list_string_agg list_sum
    list_transform list_unique list_value list_var_pop list_var_samp list_where list_zip listagg ln
    log log10 log2 lower lpad ltrim lttb mad make_date make_time make_timestamp make_timestamp_ms
    make_timestamp_ns make_timestamptz make_type map map_concat map_contains map_contains_entry
    map_contains_value map_entries map_extract map_extract_value map_from_entries map_keys
    map_to_pg_oid map_type_id_to_pg_oid map_values max max_by md5 md5_number md5_number_lower
    md5_number_upper mean median microsecond millennium millisecond min min_by minute mismatches mod
    mode month monthname multiply nanosecond nextafter nfc_normalize normalized_interval
    not_ilike_escape not_like_escape now nth_value ntile nullif obj_description octet_length ord
    overlay parse_dirname parse_dirpath parse_duckdb_log_message parse_filename
    parse_formatted_bytes parse_path path_join percent_rank pg_size_pretty pg_typeof pi position pow
    power prefix printf product quantile quantile_cont quantile_disc quarter query query_table
    radians random range rank rank_dense reduce regexp_escape regexp_extract regexp_extract_all
    regexp_full_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table
    regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    remap_struct repeat repeat_row replace replace_type reservoir_quantile reverse right
    right_grapheme round round_even roundbankers row row_number row_to_json rpad rtrim second sem
    session_user set_bit setseed sha1 sha256 shobj_description sign signbit sin sinh skewness split
    split_part sqrt st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_crs st_geomfromgeojson
    st_geomfromwkb st_intersects_extent st_setcrs starts_with stats stddev stddev_pop stddev_samp
    str_split str_split_regex strftime string_agg string_split string_split_regex string_to_array
    strip_accents strlen strpos strptime struct_concat struct_contains struct_extract
    struct_extract_at struct_has struct_indexof struct_insert struct_keys struct_pack
    struct_position struct_update struct_values substr substring substring_grapheme subtract suffix
    sum sum_no_overflow sumkahan summary switch tan tanh time_bucket timetz_byte_comparable timezone
    timezone_hour timezone_minute to_base to_base64 to_binary to_centuries to_days to_decades to_hex
    to_hours to_json to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters
    to_seconds to_timestamp to_weeks to_years today transaction_timestamp translate trim trunc
    try_strptime typeof ucase unbin unhex unicode union_extract union_tag union_value unnest
    unpivot_list upper url_decode url_encode user uuid uuid_extract_timestamp uuid_extract_version
    uuidv4 uuidv7 var_pop var_samp variance variant_array_length variant_comparator variant_contains
    variant_exists variant_extract variant_extract_string variant_group_array variant_group_object
    variant_keys variant_normalize variant_to_parquet_variant variant_type variant_typeof
    vector_type vertex_extract wavg week weekday weekofyear weighted_avg xor year yearweek
""".split()

ALLOWED = frozenset(
    [
        *_NAMES,
        *_OPERATORS,
        "is distinct from",
        "is not distinct from",
        *(f"collate_{locale}" for locale in _LOCALES),
        *(f"icu_collate_{locale}" for locale in _LOCALES),
    ]
)
"""In lower case, as DuckDB compares names; operators as its parser calls them."""

_REASONS = {
    "reads files": """
        glob parquet_bloom_probe parquet_file_metadata parquet_full_metadata parquet_kv_metadata
        parquet_metadata parquet_page_index parquet_scan parquet_schema read_blob read_csv
        read_csv_auto read_duckdb read_json read_json_auto read_json_objects read_json_objects_auto
        read_ndjson read_ndjson_auto read_ndjson_objects read_parquet read_single_csv_file
        read_single_json_file read_single_parquet_file read_text sniff_csv
    """,
    "reads memory of the program by its address": """
        arrow_scan arrow_scan_dumb pandas_scan python_arrow_scan python_map_function seq_scan
    """,
    "is about the machine, the program or other queries": """
        current_connection_id current_query_id current_setting current_transaction_id
        duckdb_approx_database_count duckdb_available_metrics duckdb_columns duckdb_connection_count
        duckdb_constraints duckdb_coordinate_systems duckdb_databases duckdb_dependencies
        duckdb_dialects duckdb_eviction_queues duckdb_extension_repositories duckdb_extensions
        duckdb_external_file_cache duckdb_external_resource_types duckdb_external_resources
        duckdb_functions duckdb_grammar_extensions duckdb_indexes duckdb_keywords
        duckdb_live_query_metrics duckdb_log_contexts duckdb_logs duckdb_logs_parsed duckdb_memory
        duckdb_optimizers duckdb_prepared_statements duckdb_profiling_settings duckdb_schemas
        duckdb_secret_type_parameters duckdb_secret_types duckdb_secrets duckdb_sequences
        duckdb_settings duckdb_table_sample duckdb_tables duckdb_temporary_files duckdb_triggers
        duckdb_types duckdb_variables duckdb_views get_block_size getenv getenv getvariable
        icu_calendar_names index_key inet_client_addr inet_client_port inet_server_addr
        inet_server_port pg_conf_load_time pg_postmaster_start_time pg_timezone_names
        pragma_collations pragma_database_size pragma_metadata_info pragma_platform pragma_show
        pragma_storage_info pragma_table_info pragma_user_agent pragma_version txid_current version
        which_secret
    """,
    "imitates PostgreSQL's catalog": """
        has_any_column_privilege has_column_privilege has_database_privilege
        has_foreign_data_wrapper_privilege has_function_privilege has_language_privilege
        has_schema_privilege has_sequence_privilege has_server_privilege has_table_privilege
        has_tablespace_privilege pg_collation_is_visible pg_conversion_is_visible
        pg_function_is_visible pg_get_constraintdef pg_get_expr pg_get_viewdef pg_has_role
        pg_is_other_temp_schema pg_my_temp_schema pg_opclass_is_visible pg_operator_is_visible
        pg_opfamily_is_visible pg_table_is_visible pg_ts_config_is_visible pg_ts_dict_is_visible
        pg_ts_parser_is_visible pg_ts_template_is_visible pg_type_is_visible
    """,
    "changes the database or its settings": """
        add_grammar_extension checkpoint create_external_resource currval
        deregister_external_resource destroy_external_resource disable_logging disable_profiling
        enable_logging enable_profiling force_checkpoint nextval register_external_resource
        register_external_resource_type remove_grammar_extension setval truncate_duckdb_logs
        write_log
    """,
    "only waits": """
        pg_sleep sleep_ms
    """,
    "runs or plans a query that nothing has checked": """
        json_execute_serialized_sql json_serialize_plan
    """,
    "is for DuckDB's own plans and tests": """
        __internal_barrier __internal_compress_geometry_point __internal_compress_integral_ubigint
        __internal_compress_integral_uinteger __internal_compress_integral_usmallint
        __internal_compress_integral_utinyint __internal_compress_string_hugeint
        __internal_compress_string_ubigint __internal_compress_string_uhugeint
        __internal_compress_string_uinteger __internal_compress_string_usmallint
        __internal_compress_string_utinyint __internal_compressed_materialization_cast
        __internal_decompress_geometry_point __internal_decompress_integral_bigint
        __internal_decompress_integral_hugeint __internal_decompress_integral_integer
        __internal_decompress_integral_smallint __internal_decompress_integral_ubigint
        __internal_decompress_integral_uhugeint __internal_decompress_integral_uinteger
        __internal_decompress_integral_usmallint __internal_decompress_string
        __internal_json_copy_to_geojson __internal_json_copy_to_json
        __internal_tablefilter_bloom_filter __internal_tablefilter_dynamic
        __internal_tablefilter_optional __internal_tablefilter_prefix_range
        __internal_tablefilter_selectivity_optional test_all_types test_vector_types
    """,
}

REFUSED = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""What no query may call, with the reason: a predicate to the name."""

LOCAL = frozenset(
    "combine combine_aggr finalize to_aggregate_state variant_bytes_to_variant".split()
)
"""What only local callers may call: these take DuckDB's own states and values out of bytes, which
it does not check.
"""

SYSTEM_VIEWS = frozenset(
    """
        duckdb_columns duckdb_constraints duckdb_databases duckdb_indexes duckdb_logs duckdb_schemas
        duckdb_tables duckdb_types duckdb_views pg_am pg_attrdef pg_attribute pg_class pg_collation
        pg_constraint pg_database pg_depend pg_description pg_enum pg_index pg_indexes pg_namespace
        pg_prepared_statements pg_proc pg_sequence pg_sequences pg_settings pg_tables pg_tablespace
        pg_type pg_views pragma_database_list sqlite_master sqlite_schema sqlite_temp_master
        sqlite_temp_schema
    """.split()
)
"""Views of every database, besides those of the information_schema, that no query may read."""


READING = frozenset({"SELECT", "MULTI"})
"""Statements that only read. MULTI is how DuckDB parses a PIVOT that has to find its columns."""

_EXPLAIN = re.compile(
    r"(?:\s++|--[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/)*+explain\b(?:\s*+\([^()]*+\)|\s++analyze\b)?",
    re.IGNORECASE | re.DOTALL,
)
_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
"""The parts of a statement that read; others (INSERT_QUERY_NODE) may be in a WITH."""
_NESTED = frozenset({"query", "query_table"})
_RECURRING = "recurring"
"""As a schema: all rows of a recursive expression so far, not those of its last step."""
_OWN_SCHEMAS = frozenset({"", "main", "memory", "temp"})


class Guard:
    """Refuses queries for local callers, or for ``remote`` ones: those may call only what is known
    to be harmless, and name no table but their own.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, remote: bool) -> None:
        self._remote = remote
        self._views = SYSTEM_VIEWS
        self._words = SYSTEM_VIEWS | _NESTED | REFUSED.keys()
        if remote:
            self._views |= _names(
                connection,
                "select view_name from duckdb_views() where internal"
                " and schema_name <> 'information_schema'",
            )
            # A pragma is a statement, its name is an ordinary word.
            functions = (
                "select function_name from duckdb_functions() where function_type <> 'pragma'"
            )
            self._words |= self._views | LOCAL | (_names(connection, functions) - ALLOWED)

    def check(
        self, connection: duckdb.DuckDBPyConnection, query: str, tables: Collection[str]
    ) -> str:
        """The type of the statement ``query``: one of `READING`, or EXPLAIN of one.

        ``tables`` are all that a profile has. Raises CheckFailed for what may not be done,
        duckdb.Error for what is no SQL.
        """
        kind = _kind(connection, query)
        if kind == "EXPLAIN":
            result = _EXPLAIN.match(query)
            query = query[result.end() :] if result else query
            inner = _kind(connection, query)
        else:
            inner = kind
        if inner not in READING:
            raise CheckFailed("the query must be one statement that reads, such as SELECT")
        self._check_text(connection, query, tables)
        return kind

    def _check_text(
        self,
        connection: duckdb.DuckDBPyConnection,
        query: str,
        tables: Collection[str],
        scope: _Scope | None = None,
    ) -> None:
        serialized = connection.execute("select json_serialize_sql(?::varchar)", [query]).fetchall()
        try:
            tree = json.loads(serialized[0][0])
        except RecursionError:
            tree = {"error": True}
        if tree["error"]:
            for word in re.findall(r"\w+", query):
                if word.lower() in self._words:
                    raise _refused(word)
            return
        for node, inner in _scoped(tree["statements"], scope):
            kind = str(node.get("type", ""))
            if kind.endswith("_NODE") and kind not in _NODES:
                raise CheckFailed("the query must be one statement that reads, such as SELECT")
            if kind == "BASE_TABLE":
                self._check_table(node, tables, inner)
            if node.get("class") == "FUNCTION" or node.get("function_name"):
                self._check_call(connection, node, tables, inner)

    def _check_table(
        self, node: dict[str, Any], tables: Collection[str], scope: _Scope | None
    ) -> None:
        name = node["table_name"]
        if name.lower() in self._views:
            raise _refused(name)
        if not self._remote:
            return
        place = node["schema_name"].lower(), node["catalog_name"].lower()
        if place in {("", ""), (_RECURRING, "")} and _has(scope, name):
            return
        if not _OWN_SCHEMAS.issuperset(place):
            raise _refused(f"{node['schema_name']}.{name}")
        self._check_name(name, tables)

    @staticmethod
    def _check_name(name: str, tables: Collection[str]) -> None:
        problem = missing_table(name, tables)
        if problem:
            raise CheckFailed(problem)

    def _check_call(
        self,
        connection: duckdb.DuckDBPyConnection,
        node: dict[str, Any],
        tables: Collection[str],
        scope: _Scope | None,
    ) -> None:
        name = node["function_name"]
        lower = name.lower()
        if lower in REFUSED:
            raise _refused(name)
        if lower in _NESTED:
            text = _first_text(node)
            if text is None:
                raise CheckFailed(f"{name}() needs a constant text")
            if lower == "query":
                self._check_text(connection, text, tables, scope)
            elif text.rpartition(".")[2].strip('"').lower() in self._views:
                raise _refused(text)
            elif self._remote and not _has(scope, text):
                self._check_name(text, tables)
        elif self._remote and lower not in ALLOWED:
            import difflib

            similar = difflib.get_close_matches(lower, ALLOWED, n=3)
            hint = f"; similar: {', '.join(similar)}" if similar else ""
            raise CheckFailed(f"there is no function {name} that a query may call{hint}")


def _kind(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """The type of the only statement; empty where there are none or several."""
    statements = connection.extract_statements(query)
    return str(statements[0].type.name) if len(statements) == 1 else ""


def _names(connection: duckdb.DuckDBPyConnection, query: str) -> frozenset[str]:
    return frozenset(name.lower() for (name,) in connection.execute(query).fetchall())


def _refused(name: str) -> CheckFailed:
    reason = REFUSED.get(name.lower())
    why = f": it {reason}" if reason else ""
    return CheckFailed(f"{name} is not allowed in a query{why}; query the tables of the profile")


@dataclass(frozen=True)
class _Scope:
    """The first ``count`` common table expressions (WITH) of a part of a statement, by name, and
    those that its surroundings see.
    """

    places: dict[str, int]
    count: int
    outer: _Scope | None


def _has(scope: _Scope | None, name: str) -> bool:
    """Whether a name without a schema means a common table expression there."""
    lower = name.lower()
    while scope is not None:
        if scope.places.get(lower, scope.count) < scope.count:
            return True
        scope = scope.outer
    return False


def _scoped(tree: Any, scope: _Scope | None) -> Iterator[tuple[dict[str, Any], _Scope | None]]:
    """Every object of the tree, and what it sees: an expression sees those before it, one that is
    recursive sees itself behind its UNION, and what follows a WITH sees all of that.
    """
    waiting = [(tree, scope)]
    while waiting:
        node, scope = waiting.pop()
        if isinstance(node, list):
            waiting.extend((one, scope) for one in node)
        if not isinstance(node, dict):
            continue
        expressions = _expressions(node)
        places = {one["key"].lower(): place for place, one in enumerate(expressions)}
        for place, one in enumerate(expressions):
            waiting.append((one["value"], _Scope(places, place, scope)))
        inner = _Scope(places, len(places), scope) if places else scope
        yield node, inner
        for key, value in node.items():
            if node.get("type") == "RECURSIVE_CTE_NODE" and key == "right":
                itself = _Scope({node["cte_name"].lower(): 0}, 1, inner)
                waiting.append((value, itself))
            elif not (expressions and key == "cte_map"):
                waiting.append((value, inner))


def _expressions(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The common table expressions (WITH) of a part of a statement."""
    result = node.get("cte_map")
    return result["map"] if isinstance(result, dict) else []


def _first_text(call: dict[str, Any]) -> str | None:
    """The first argument of a call, when it is a constant text."""
    arguments = call.get("arguments") or call.get("children") or []
    if not arguments:
        return None
    first = arguments[0].get("expression", arguments[0])
    if first.get("class") != "CONSTANT":
        return None
    literal = first.get("literal") or first.get("value") or {}
    value = literal.get("text", literal.get("value"))
    return value if isinstance(value, str) else None
