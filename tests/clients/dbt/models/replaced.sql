{{ config(materialized='incremental', incremental_strategy='insert_overwrite', partition_by={'field': 'day', 'data_type': 'date'}) }}
select id, name, day from {{ ref('a_table') }}
