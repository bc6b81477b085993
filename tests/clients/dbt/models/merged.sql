{{ config(materialized='incremental', unique_key='id') }}
select id, name, day from {{ ref('a_table') }}
{% if is_incremental() %}
union all
select 3 as id, 'C' as name, date '2022-10-01' as day
{% endif %}
